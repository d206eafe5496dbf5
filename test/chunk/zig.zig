const std = @import("std");

const limit = 1024;

/// A point in the plane.
pub const Point = struct {
    x: f32,
    y: f32,

    /// How far from the origin.
    pub fn length(self: Point) f32 {
        const sum = self.x * self.x + self.y * self.y;
        return @sqrt(sum);
    }

    pub fn scale(self: *Point, by: f32) void {
        self.x *= by;
        self.y *= by;
    }
};

pub const Color = enum {
    red,
    green,
    blue,
};

fn parse(text: []const u8) !u32 {
    var n: u32 = 0;
    for (text) |c| {
        n = n * 10 + (c - '0');
    }
    return n;
}

test "parse reads numbers" {
    try std.testing.expectEqual(@as(u32, 42), try parse("42"));
    try std.testing.expect(limit > 0);
}
