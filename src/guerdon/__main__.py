"""``python -m guerdon`` is the `guerdon` command."""

from guerdon.cli import main

if __name__ == "__main__":
    main()
