/**
 * Owners of tasks that came over the bus. Names of tokens and of people who sign in contain no colon, so they
 * cannot collide.
 */
const PREFIX = 'nats:'

/** Returns the owner of the tasks of a client of the bus. */
export function busOwner(clientId: string): string {
  return `${PREFIX}${clientId}`
}
