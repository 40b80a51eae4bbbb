"""A converter: it decodes everything once, which is the remedy."""

import numpy as np

from photos import Gallery


def main():
    gallery = Gallery("train")
    images = np.stack([np.asarray(gallery[index]) for index in range(len(gallery))])
    np.save("train_160.npy", images)


if __name__ == "__main__":
    main()
