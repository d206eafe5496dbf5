"""chromadb.execution.expression: the search expressions of Chroma's cloud. They can be made, combined and passed on; local Chroma and Lode answer
that search() is not implemented."""
from ..._rank import Abs, Div, Exp, Knn, Log, Max, Min, Mul, Rank, Rrf, Sub, Sum, Val
from ..._search import Aggregate, GroupBy, Limit, MaxK, MinK, Search, Select
from ..._where import (And, Contains, Eq, Gt, Gte, In, K, Key, Lt, Lte, Ne, Nin, NotContains, NotRegex, Or, Regex, Where)

SearchWhere = Where
__all__ = [name for name in dir() if not name.startswith("_")]
