"""Reading images."""

import cv2


def read_rgb(path, size):
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)  # DDP303
    image = cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
