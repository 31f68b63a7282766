"""`python -m dynamo guide` prints all that is needed to write code with the library."""

import argparse
from importlib.resources import files

if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m dynamo", description=__doc__)
    parser.add_argument("what", choices=["guide"])
    parser.parse_args()
    print((files("dynamo") / "guide.md").read_text(encoding="utf-8"), end="")
