package org.example.stream

import scala.collection.mutable

/** A value that may come later. */
sealed trait Signal[+A] {
  def map[B](f: A => B): Signal[B]
  def name: String = "signal"
}

final case class Constant[A](value: A) extends Signal[A] {
  def map[B](f: A => B): Signal[B] = Constant(f(value))
}

class Bus[A](capacity: Int) extends Signal[A] {
  private val queue = mutable.Queue.empty[A]
  var closed = false

  /** Adds unless it is full. */
  def offer(item: A): Boolean = {
    if (closed || queue.size >= capacity) false
    else {
      queue.enqueue(item)
      true
    }
  }

  def map[B](f: A => B): Signal[B] = {
    val out = new Bus[B](capacity)
    queue.foreach(item => out.offer(f(item)))
    out
  }
}

object Bus {
  val Default = 64

  def of[A](items: A*): Bus[A] = {
    val bus = new Bus[A](items.size max Default)
    items.foreach(bus.offer)
    bus
  }
}
