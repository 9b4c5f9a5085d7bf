"""What a job does inside a worker, behind the `Evaluator` protocol.

Who runs it, where and how often is left to the engines, and what becomes of the fitness to the ecosystem.
"""
