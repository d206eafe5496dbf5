import Foundation

/// Something that can be drawn.
protocol Drawable {
    var bounds: CGRect { get }
    func draw(in context: CGContext)
}

enum Theme: String {
    case light
    case dark

    var isDark: Bool { self == .dark }
}

struct Circle: Drawable {
    let center: CGPoint
    let radius: CGFloat

    var bounds: CGRect {
        CGRect(x: center.x - radius, y: center.y - radius, width: radius * 2, height: radius * 2)
    }

    func draw(in context: CGContext) {
        context.addEllipse(in: bounds)
        context.strokePath()
    }
}

/// Keeps what is drawn.
final class Canvas {
    private var shapes: [Drawable] = []
    let theme: Theme

    init(theme: Theme) {
        self.theme = theme
        self.shapes = []
    }

    // Adds at the top.
    func add(_ shape: Drawable) {
        shapes.append(shape)
        setNeedsDisplay()
    }

    deinit {
        shapes.removeAll()
        print("gone")
    }
}

extension Canvas {
    func clear() {
        shapes.removeAll()
        setNeedsDisplay()
    }
}

func midpoint(_ a: CGPoint, _ b: CGPoint) -> CGPoint {
    let x = (a.x + b.x) / 2
    let y = (a.y + b.y) / 2
    return CGPoint(x: x, y: y)
}
