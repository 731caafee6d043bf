/**
 * Owners of tasks that came over the bus. No token and no person who signs in can have such a name: theirs
 * hold no colon.
 */
const PREFIX = 'nats:'

/** The owner of the tasks of a client of the bus. */
export function busOwner(clientId: string): string {
  return `${PREFIX}${clientId}`
}
