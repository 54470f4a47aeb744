"""`make chaos`: writes and faults by a seeded schedule, then a check of the whole history.

schedule (seed) --> writer, edits, faults --> the system --> receivers
                          |                                     |
                          +------> history <--------------------+
                                      |
                                   check --> report
"""
