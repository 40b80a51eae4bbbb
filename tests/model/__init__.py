"""What the model understands of a program, subject by subject."""
