"""The data pipeline on Spark: the change stream in, messages out. The only package that knows pyspark."""
