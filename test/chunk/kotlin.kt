package org.example.geo

import kotlin.math.sqrt

/** A place on the map. */
data class Point(val x: Double, val y: Double)

sealed interface Shape {
    val area: Double
    fun scale(by: Double): Shape
}

class Polygon(private val points: List<Point>) : Shape {
    init {
        require(points.size > 2)
    }

    override val area: Double
        get() = points.zipWithNext { a, b -> a.x * b.y - b.x * a.y }.sum() / 2

    /** Every point, further out. */
    override fun scale(by: Double): Shape {
        val scaled = points.map { Point(it.x * by, it.y * by) }
        return Polygon(scaled)
    }

    companion object {
        const val LIMIT = 10_000

        fun square(side: Double): Polygon {
            val corners = listOf(Point(0.0, 0.0), Point(side, 0.0), Point(side, side), Point(0.0, side))
            return Polygon(corners)
        }
    }
}

object Registry {
    private val shapes = mutableMapOf<String, Shape>()

    fun register(name: String, shape: Shape) {
        check(name !in shapes)
        shapes[name] = shape
    }
}

fun distance(a: Point, b: Point): Double {
    val dx = a.x - b.x
    val dy = a.y - b.y
    return sqrt(dx * dx + dy * dy)
}
