/** The server's state folder cannot be used, or not any more; one line that names folder or file. */
export class StateFault extends Error {
  override readonly name = 'StateFault'
}
