/** Answers health checks while the store is waited for, or another controller leads: alive, and not ready. */
import { createServer } from 'node:http'
import type { Settings } from '../settings/settings.ts'
import type { StandbyState } from './standby-state.ts'

/** The API then listens on the same port; 0 leaves nothing to listen on. */
export async function listenWhileWaiting(
  { httpHost, httpPort }: Pick<Settings, 'httpHost' | 'httpPort'>,
  standby: StandbyState,
): Promise<{ close(): Promise<void> }> {
  if (httpPort === 0) return { close: () => Promise.resolve() }
  const server = createServer((request, response) => {
    const isAlive = request.url?.split('?')[0] === '/livez'
    response.writeHead(isAlive ? 200 : 503, {
      'content-type': 'application/json; charset=utf-8',
      ...(isAlive ? {} : { 'retry-after': '1' }),
      connection: 'close',
    })
    response.end(isAlive ? '{"status":"alive"}\n' : `${notReady(standby)}\n`)
  })
  // The API reports a port that cannot be used.
  await new Promise<void>((resolve) => {
    server.once('error', () => resolve())
    server.listen(httpPort, httpHost, resolve)
  })
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function notReady({ detail }: StandbyState): string {
  return JSON.stringify({ status: 'not_ready', checks: [{ name: 'store', ok: false, detail }] })
}
