"""The front door: the command line, what a person sees, the demo.

Belongs here: arguments, sentences, tables, JSON, exit codes. Does not: any rule about
data; a command is a few lines over `pipeline.runs`.
"""
