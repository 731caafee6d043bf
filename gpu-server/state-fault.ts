/** The server's state folder cannot be used, or no longer; one line that names folder or file. */
export class StateFault extends Error {
  override readonly name = 'StateFault'
}
