import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

/**
 * Asks over HTTP on a connection of its own: one that was open before may be closed by its server while the
 * request waits. Returns the status and the body.
 */
export async function askOnce(url: string, method = 'GET'): Promise<string> {
  const sent = request(url, { method, agent: false })
  sent.setTimeout(60_000, () => sent.destroy(new Error(`${url}: no answer within 60 s`)))
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return `${answer.statusCode} ${await text(answer)}`
}
