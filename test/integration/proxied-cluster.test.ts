/** Two model servers that run while their VRAM is away share a declared GPU; clients use their proxies. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { askOnce } from '../support/ask-once.ts'
import { freePort } from '../support/free-port.ts'
import { LiveCluster, until, type Member } from '../support/live-cluster.ts'
import { PORTS } from '../support/proxied-task.ts'

const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 24_576, swap: 'pinned-gen5' }] })
const VRAM_MIB = 16_000
/** Answers 500 while its VRAM is away: that is what the file stands for. */
const SERVER = `
  const { statSync, truncateSync, writeFileSync } = require('node:fs')
  const file = process.env.HEADROOM_WORK + '/.headroom-vram', size = ${VRAM_MIB} * 1024
  writeFileSync(file, '')
  truncateSync(file, size)
  require('node:http').createServer((request, answer) => {
    answer.statusCode = statSync(file).size < size ? 500 : 200
    answer.end(process.argv[1])
  }).listen(Number(process.argv[2]), '127.0.0.1')`
const hook = (mib: number): object => ({
  command: ['sh', '-c', `truncate -s ${mib}K "$HEADROOM_WORK/.headroom-vram"`],
})

let cluster: LiveCluster
let server: Member
beforeAll(async () => {
  cluster = await LiveCluster.start()
  await cluster.send('PUT', '/config', {
    default_vram_overcommit_percent: 200,
    idle_swap_out_seconds: 1,
    eager_swap_in_seconds: null,
    safety_reserve_mib: 0,
  })
  const range = `${PORTS.from}-${PORTS.to}`
  const options = ['--proxy-ports', range, '--proxy-address', '127.0.0.1', '--idle-after', '500ms']
  server = await cluster.startServer('gpu', INVENTORY, {}, ...options)
})
afterAll(() => cluster?.end())

interface Model {
  readonly id: string
  readonly name: string
  /** Its own port, and that of its proxy. */
  readonly port: number
  readonly proxy: string
}

const residencyOf = async (id: string): Promise<string> =>
  (await cluster.get<{ readonly residency: string }>(`/tasks/${id}`)).residency

async function submit(name: string): Promise<Model> {
  const port = await freePort()
  const { id } = await cluster.send<{ readonly id: string }>('POST', '/tasks', {
    name,
    vram_mib: VRAM_MIB,
    ports: [{ name: 'api', target: port, protocol: 'http' }],
    swap_method: 'hooks',
    swap_hooks: { suspend: hook(0), resume: hook(VRAM_MIB) },
    command: [process.execPath, '-e', SERVER, name, String(port)],
  })
  const addressOf = async (): Promise<string | null> => {
    if ((await residencyOf(id)) !== 'resident') return null
    const { ports } = await cluster.get<{ ports: readonly [{ address: string | null }] }>(
      `/tasks/${id}/assignment`,
    )
    return ports[0].address
  }
  await until(`${name} has an address`, async () => (await addressOf()) !== null)
  const model = { id, name, port, proxy: (await addressOf()) ?? '' }
  await until(`${name} answers`, async () => (await ask(model.proxy)) === `200 ${name}`)
  return model
}

const ask = (address: string): Promise<string> => askOnce(`http://${address}/`)

it('Each request finds the VRAM in place, also when the server is killed meanwhile', async () => {
  const [chat, code] = [await submit('chat'), await submit('code')]
  await until('chat is out', async () => (await residencyOf(chat.id)) === 'swapped_out')
  // Without the proxy the server answers, and has no VRAM.
  expect(await ask(`127.0.0.1:${chat.port}`)).toBe('500 chat')
  expect(await ask(chat.proxy)).toBe('200 chat')
  expect(await residencyOf(code.id)).not.toBe('resident')
  await server.end('SIGKILL')
  const held = ask(code.proxy)
  await server.start(() => server.output.split('GPU server runs').length > 2)
  expect(await held).toBe('200 code')
  for (const { id } of [chat, code]) await cluster.send('DELETE', `/tasks/${id}?now=true`)
})
