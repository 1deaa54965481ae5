"""What the project claims about its speed and size, measured. `scripts/bench` runs it; no test does.

Each module measures one family of rows, and each row names what it is compared with. Both sides of a ratio run in
turn in the same run, so that whatever else the machine does hits both alike.
"""
