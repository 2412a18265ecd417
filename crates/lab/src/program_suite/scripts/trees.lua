-- Trees of tables, and strings built piece by piece.
local function tree(depth)
    if depth == 0 then return { name = "leaf" } end
    return { left = tree(depth - 1), right = tree(depth - 1), name = "level " .. depth }
end
local function count(node)
    if not node.left then return 1 end
    return 1 + count(node.left) + count(node.right)
end
local kept, total = tree(15), 0
for step = 1, 24 do
    total = total + count(tree(12))
    local parts = {}
    for line in io.lines("words.txt") do
        parts[#parts + 1] = line:upper():sub(step, step + 30)
        if #parts == 8000 then break end
    end
    total = total + #table.concat(parts, ";")
end
print(total + count(kept))
