"""python -m kwire"""

from kwire.cli.main import main

main()
