"""From HTTP to operations and back, driven by botocore's service models.

    routing   an HTTP request -> the operation it means
    parse     the request     -> a dict of the operation's input
    serialize a dict of output -> headers and XML
    faults    an error        -> status and XML

Plans are compiled from the models once, at start; a request walks a plan, not the model.
"""
