-- queue.lua: a queue of two ends
local M = {}

local LIMIT = 100

--- Makes a queue.
-- @param name for messages
function M.new(name)
  local self = setmetatable({}, { __index = M })
  self.name = name
  self.first, self.last = 0, -1
  return self
end

function M:push(value)
  assert(self.last - self.first < LIMIT, "full")
  self.last = self.last + 1
  self[self.last] = value
end

local function check(value)
  if value == nil then
    error("nothing to push", 2)
  end
end

M.pop = function(self)
  local value = self[self.first]
  self[self.first] = nil
  self.first = self.first + 1
  return value
end

return M
