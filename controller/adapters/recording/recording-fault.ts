/** A recording cannot be read: one line that names the file and the place. */
export class RecordingError extends Error {
  override readonly name = 'RecordingError'
}
