/** Reports of agents over HTTPS, with the certificates that the operator makes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { AgentClient } from '../../../operator/adapters/agent-client.ts'
import { AGENT_CALLER, startAgentServer } from '../../../operator/adapters/agent-server.ts'
import type { CallerServer } from '../../../operator/adapters/caller-server.ts'
import { renewedCertificates, renewedClient } from '../../../operator/adapters/own-certificates.ts'
import type { AgentAnswer, AgentReport } from '../../../protocol/agent-messages.ts'

const own = renewedCertificates(null, 'headroom-extender', ['localhost'], Date.now())
const stranger = renewedCertificates(null, 'stranger', ['localhost'], Date.now())
const folder = mkdtempSync(join(tmpdir(), 'headroom-agent-server-'))
const report: AgentReport = { node: 'a', host_swap_mib: 1, wait_ms: 0, pods: [] }
const order = { pod: 'u', containers: ['c'], gpus: [0], vram_mib: 1, order: 7, wanted: 'out' } as const
const heard: AgentReport[] = []
let answer: AgentAnswer | null = { pods: [order] }
let server: CallerServer
const clients: AgentClient[] = []

beforeAll(async () => {
  server = await startAgentServer({
    ...{ host: '127.0.0.1', port: 0, cert: own.cert, key: own.key, ca: own.authorities, log: () => {} },
    nodeOf: (token) => Promise.resolve(token === 'of-a' ? 'a' : token === 'of-b' ? 'b' : null),
    reported: (each) => {
      heard.push(each)
      return Promise.resolve(answer)
    },
  })
})
afterAll(async () => {
  for (const client of clients) client.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

function clientAs(name: string, authority = own, token = 'of-a'): AgentClient {
  const { cert, key } = renewedClient(null, name, authority, Date.now())
  const files = { token, 'ca.crt': own.authorities, 'tls.crt': cert, 'tls.key': key }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  const client = new AgentClient({
    host: 'localhost',
    port: server.port,
    certificates: folder,
    tokenFile: join(folder, 'token'),
  })
  clients.push(client)
  return client
}

it('A report is answered with the orders', async () => {
  expect(await clientAs(AGENT_CALLER).report(report)).toEqual({ pods: [order] })
  expect(heard).toEqual([report])
})

it('Only agents may report', async () => {
  await expect(clientAs('headroom-scheduler').report(report)).rejects.toThrow('403')
  await expect(clientAs(AGENT_CALLER, stranger).report(report)).rejects.toThrow()
  expect(heard).toHaveLength(1)
})

it('An agent reports for its own node only, whatever certificate it has', async () => {
  const as = (token: string) => clientAs(AGENT_CALLER, own, token).report(report)
  await expect(as('of-b')).rejects.toThrow('403: the token is of node b')
  await expect(as('x')).rejects.toThrow('403: the token is not that of an agent')
  await expect(as('')).rejects.toThrow('403')
  expect(heard).toHaveLength(1)
})

it('A malformed report is refused with its field, and a malformed answer too', async () => {
  const client = clientAs(AGENT_CALLER)
  await expect(client.report({ ...report, wait_ms: -1 })).rejects.toThrow('400: report.wait_ms')
  answer = { pods: [{ ...order, gpus: [99] }] }
  await expect(client.report(report)).rejects.toThrow('the answer.pods[0].gpus[0]')
})

it('A replica that does not lead gives no orders', async () => {
  answer = null
  await expect(clientAs(AGENT_CALLER).report(report)).rejects.toThrow('503')
})
