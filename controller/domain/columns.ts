/** Columns of numbers that grow with what they describe. */

/** A copy with room for so many; what is new has this value. */
export function grownColumn(column: Float64Array, room: number, value: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(room).fill(value, column.length)
  larger.set(column)
  return larger
}

/** The same, of flags; what is new is not set. */
export function grownFlags(flags: Uint8Array, room: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(room)
  larger.set(flags)
  return larger
}
