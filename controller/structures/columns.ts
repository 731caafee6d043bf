/** Typed arrays that grow with their contents. */

/** Returns a larger copy; new elements have this value. */
export function grownColumn(column: Float64Array, room: number, value: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(room).fill(value, column.length)
  larger.set(column)
  return larger
}

/** Returns a larger copy of flags; new flags are not set. */
export function grownFlags(flags: Uint8Array, room: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(room)
  larger.set(flags)
  return larger
}
