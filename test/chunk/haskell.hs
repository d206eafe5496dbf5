module Data.Heap
  ( Heap
  , insert
  , popMin
  ) where

import Data.Maybe (fromMaybe)

-- | A heap of ordered things.
data Heap a
  = Empty
  | Node Int a (Heap a) (Heap a)
  deriving (Show, Eq)

newtype Rank = Rank { unRank :: Int }

class Container f where
  empty :: f a
  toList :: f a -> [a]
  size :: f a -> Int
  size = length . toList

instance Container Heap where
  empty = Empty
  toList Empty = []
  toList (Node _ x l r) = x : toList l ++ toList r

-- | Puts one more in.
insert :: Ord a => a -> Heap a -> Heap a
insert x heap =
  let single = Node 1 x Empty Empty
  in merge single heap

merge :: Ord a => Heap a -> Heap a -> Heap a
merge Empty h = h
merge h Empty = h
merge a@(Node _ x la ra) b@(Node _ y lb rb)
  | x <= y = make x la (merge ra b)
  | otherwise = make y lb (merge a rb)

popMin :: Ord a => Heap a -> Maybe (a, Heap a)
popMin Empty = Nothing
popMin (Node _ x l r) = Just (x, merge l r)
