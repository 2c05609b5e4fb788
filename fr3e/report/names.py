"""Names of what the report makes, readable without any heavy import: the Snakefile names its outputs from here."""

TABLE1 = ("csv", "md", "tex", "html")
COST = ("csv", "md", "html")
