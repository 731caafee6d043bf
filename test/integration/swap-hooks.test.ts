/** Tasks that move their VRAM themselves, on a declared GPU that measures it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stateOf } from '../../gpu-server/guard/process-table.ts'
import { askOnce } from '../support/ask-once.ts'
import { freePort } from '../support/free-port.ts'
import { headroom, LiveCluster, until, type Member } from '../support/live-cluster.ts'

const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 24_576, swap: 'pinned-gen5' }] })
const VRAM_MIB = 16_000
/** What a script says about its VRAM. */
const USES = (mib: number): string => `truncate -s ${mib}K "$HEADROOM_WORK/.headroom-vram"`

/** The paths of vLLM, of which no other is needed here. */
const ENGINE = `import { createServer } from 'node:http'
import { openSync, ftruncateSync } from 'node:fs'
const vram = openSync(process.env.HEADROOM_WORK + '/.headroom-vram', 'w')
const use = (mib) => ftruncateSync(vram, mib * 1024)
use(${VRAM_MIB})
let level = null
createServer((request, response) => {
  const { method, url } = request
  const sleep = /^\\/sleep\\?level=(.)$/.exec(url)
  if (method === 'POST' && sleep !== null) { level = sleep[1]; use(600) }
  else if (method === 'POST' && url === '/wake_up') { level = null; use(${VRAM_MIB}) }
  response.end(url === '/v1/models' ? (level === null ? 'awake' : 'asleep at level ' + level) : '')
}).listen(Number(process.argv[1]), '127.0.0.1')
`

let cluster: LiveCluster
let server: Member
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-hooks-'))
  cluster = await LiveCluster.start()
  await cluster.send('PUT', '/config', {
    default_vram_overcommit_percent: 200,
    idle_swap_out_seconds: 1,
    eager_swap_in_seconds: null,
    safety_reserve_mib: 0,
  })
  const proxies = ['--proxy-ports', '27700-27799', '--proxy-address', '127.0.0.1']
  server = await cluster.startServer('gpu', INVENTORY, {}, ...proxies)
})
afterAll(async () => {
  await cluster?.end()
  rmSync(folder, { recursive: true, force: true })
})

interface Task {
  readonly id: string
  readonly state: string
  readonly residency: string
  readonly noswap: number
  readonly placement: { readonly residual_mib: number; readonly demand_mib: number } | null
}

const taskOf = (id: string): Promise<Task> => cluster.get(`/tasks/${id}`)

async function submit(name: string, more: object): Promise<string> {
  const { id } = await cluster.send<Task>('POST', '/tasks', { name, vram_mib: VRAM_MIB, ...more })
  await until(`${name} runs`, async () => (await taskOf(id)).residency === 'resident')
  return id
}

/** Of a script that waits, whose VRAM is the file. */
const script = (before = ''): readonly string[] => [
  'sh',
  '-c',
  `${before}${USES(VRAM_MIB)}; while :; do sleep 0.2; done`,
]
const hook = (text: string): object => ({ command: ['sh', '-c', text] })

async function swap(id: string, direction: 'out' | 'in'): Promise<void> {
  await until(`it is ordered ${direction}`, async () => {
    try {
      await cluster.send('POST', `/tasks/${id}/swap-${direction}`)
      return true
    } catch {
      return false
    }
  })
}

async function becomes(id: string, residency: string): Promise<Task> {
  await until(`it is ${residency}`, async () => (await taskOf(id)).residency === residency)
  return taskOf(id)
}

const end = async (...ids: readonly string[]): Promise<void> => {
  for (const id of ids) await cluster.send('DELETE', `/tasks/${id}?now=true`)
  for (const id of ids) await until(`${id} has ended`, async () => (await taskOf(id)).state === 'cancelled')
}

interface Vram {
  readonly used_mib: number
  readonly foreign_mib: number
}

const vram = async (): Promise<Vram> =>
  (await cluster.get<{ items: readonly [{ readonly vram: Vram }] }>('/nodes')).items[0].vram

const notesOf = (id: string): readonly string[] =>
  server.output.split('\n').filter((line) => line.includes(id) && line.includes('hook'))

async function answer(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(60_000) })
  return ((await response.json()) as { checksum: string }).checksum
}

describe('a task with hooks', () => {
  it('on its control socket takes turns with another, answers all requests, and runs meanwhile', async () => {
    const models: { id: string; port: number; checksum: string }[] = []
    for (const name of ['chat', 'code']) {
      const port = await freePort()
      const id = await submit(name, {
        swap_method: 'hooks',
        command: headroom('work', `serve=${port}`, 'hooks'),
      })
      let checksum = ''
      await until(`${name} answers`, async () => {
        checksum = await answer(port).catch(() => '')
        return checksum !== ''
      })
      models.push({ id, port, checksum })
    }
    const [chat, code] = models as [(typeof models)[0], (typeof models)[0]]
    for (const { port, checksum } of [chat, code, chat, code]) expect(await answer(port)).toBe(checksum)
    const out = await becomes(chat.id, 'swapped_out')
    expect(out).toMatchObject({ placement: { residual_mib: 0 }, residency: 'swapped_out' })
    expect([...notesOf(chat.id), ...notesOf(code.id)]).toEqual([])

    await server.end('SIGKILL')
    await server.start(() => server.output.split('GPU server runs').length > 2)
    expect(await answer(chat.port)).toBe(chat.checksum)
    await becomes(code.id, 'swapped_out')
    expect(await answer(code.port)).toBe(code.checksum)
    await end(chat.id, code.id)
  })

  it('as commands is told by them; what stays in VRAM is measured and counted', async () => {
    const left = VRAM_MIB / 20
    const id = await submit('by-commands', {
      swap_method: 'hooks',
      swap_hooks: { suspend: hook(USES(left)), resume: hook(`${USES(VRAM_MIB)}; echo x >> resumed`) },
      command: script(),
    })
    await swap(id, 'out')
    expect(await becomes(id, 'swapped_out')).toMatchObject({ placement: { residual_mib: left } })
    expect((await vram()).used_mib).toBe(left)
    await swap(id, 'in')
    expect(await becomes(id, 'resident')).toMatchObject({ state: 'running' })
    const resumes = (): string => readFileSync(join(cluster.path('gpu'), `work/${id}.1/resumed`), 'utf8')
    expect(resumes()).toBe('x\n')
    // The next server finds it in VRAM: it is not told to return.
    const runs = (): number => server.output.split('GPU server runs').length
    const before = runs()
    await server.end('SIGKILL')
    await server.start(() => runs() > before)
    await swap(id, 'out')
    await becomes(id, 'swapped_out')
    expect(resumes()).toBe('x\n')
    expect(notesOf(id)).toEqual([])
    await end(id)
  })

  it('as requests is told over HTTP, on a port that is its own only', async () => {
    const port = await freePort()
    const file = join(folder, 'server.mjs')
    writeFileSync(
      file,
      `import { createServer } from 'node:http'
import { openSync, ftruncateSync } from 'node:fs'
const vram = openSync(process.env.HEADROOM_WORK + '/.headroom-vram', 'w')
const use = (mib) => ftruncateSync(vram, mib * 1024)
use(${VRAM_MIB})
createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/sleep?level=1') use(100)
  else if (request.method === 'POST' && request.url === '/wake_up') use(${VRAM_MIB})
  else response.statusCode = 404
  response.end()
}).listen(${port}, '127.0.0.1')
`,
    )
    const ask = { suspend: { port, path: '/sleep?level=1' }, resume: { port, path: '/wake_up' } }
    const id = await submit('by-requests', {
      swap_method: 'hooks',
      swap_hooks: ask,
      command: [process.execPath, '--input-type=module', '-e', readFileSync(file, 'utf8')],
    })
    await until('it listens', () => answersAtAll(port))
    await swap(id, 'out')
    const out = await becomes(id, 'swapped_out')
    expect(notesOf(id)).toEqual([])
    expect(out).toMatchObject({ placement: { residual_mib: 100 } })
    await swap(id, 'in')
    await becomes(id, 'resident')

    const stranger = await submit('names-a-strange-port', {
      vram_mib: 1_000,
      swap_method: 'hooks',
      swap_hooks: ask,
      command: script(),
    })
    await swap(stranger, 'out')
    await becomes(stranger, 'swapped_out')
    expect(notesOf(stranger)).toHaveLength(1)
    expect((await taskOf(id)).residency).toBe('resident')
    await end(id, stranger)
  })

  it('as an engine is told to sleep and to wake up; clients cannot tell it', async () => {
    const port = await freePort()
    const { id } = await cluster.send<Task>('POST', '/tasks', {
      name: 'engine',
      vram_mib: VRAM_MIB,
      swap_method: 'engine',
      swap_engine: { kind: 'vllm', port, level: 2 },
      ports: [{ name: 'api', target: port, protocol: 'http' }],
      command: [process.execPath, '--input-type=module', '-e', ENGINE, String(port)],
    })
    await until('it runs', async () => (await taskOf(id)).residency === 'resident')
    await until('it listens', () => answersAtAll(port))
    const { ports } = await cluster.get<{ ports: readonly { address: string | null }[] }>(
      `/tasks/${id}/assignment`,
    )
    const api = `http://${ports[0]?.address}`
    expect(await askOnce(`${api}/v1/models`)).toBe('200 awake')
    await swap(id, 'out')
    expect(await becomes(id, 'swapped_out')).toMatchObject({ placement: { residual_mib: 600 } })
    expect(notesOf(id)).toEqual([])
    expect(await askOnce(`http://127.0.0.1:${port}/v1/models`)).toBe('200 asleep at level 2')
    expect(await askOnce(`${api}/v1/models`)).toBe('200 awake')
    for (const path of ['/sleep', '/wake_up', '/is_sleeping'])
      expect(await askOnce(`${api}${path}`, 'POST')).toMatch(/^403 /)
    expect((await taskOf(id)).residency).toBe('resident')
    await end(id)
  })

  it('that lies, fails or does not answer is swapped by the driver, twice, and then always', async () => {
    const lies = await submit('lies', {
      swap_method: 'hooks',
      swap_hooks: { suspend: hook('true'), resume: hook('true') },
      command: script('echo $$ > pid; '),
    })
    for (const count of [1, 2, 2]) {
      await swap(lies, 'out')
      expect(await becomes(lies, 'swapped_out')).toMatchObject({ placement: { residual_mib: 0 } })
      expect(notesOf(lies)).toHaveLength(count)
      expect(stoppedOf(lies)).toBe(true)
      await swap(lies, 'in')
      await becomes(lies, 'resident')
    }
    expect(notesOf(lies)[0]).toContain(`its suspend hook left ${VRAM_MIB} MiB of ${VRAM_MIB} in VRAM`)
    expect(notesOf(lies)[1]).toContain('The driver swaps it from now on')
    await end(lies)

    const fails = await submit('fails', {
      swap_method: 'hooks',
      swap_hooks: { suspend: hook('exit 3'), resume: hook('true') },
      command: script(),
    })
    await swap(fails, 'out')
    await becomes(fails, 'swapped_out')
    expect(notesOf(fails)[0]).toContain('its suspend hook failed: the command ended with exit code 3')
    await end(fails)

    const silent = await submit('silent', { swap_method: 'hooks', command: script() })
    await swap(silent, 'out')
    await becomes(silent, 'swapped_out')
    expect(notesOf(silent)[0]).toContain('none of its processes handles swap commands on the control socket')
    await end(silent)
  })

  it('that uses VRAM again while it is out is seen: no other task gets that part', async () => {
    const again = `while :; do sleep 1; [ ! -e again ] || { sleep 2; ${USES(9_000)}; }; done`
    const id = await submit('comes-back', {
      swap_method: 'hooks',
      swap_hooks: { suspend: hook(`${USES(0)}; touch "$HEADROOM_WORK/again"`), resume: hook('true') },
      command: ['sh', '-c', `${USES(VRAM_MIB)}; ${again}`],
    })
    await swap(id, 'out')
    await becomes(id, 'swapped_out')
    await until('its surplus counts as foreign', async () => (await vram()).foreign_mib === 9_000)
    await end(id)
    await until('it is gone', async () => (await vram()).foreign_mib === 0)
  })

  it('is refused with hooks that say nothing, and without a command', async () => {
    const refusalOf = async (body: object): Promise<string> => {
      const response = await fetch(`${cluster.url}/api/v1/tasks`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ vram_mib: 100, command: ['true'], ...body }),
      })
      return response.status === 422 || response.status === 400
        ? ((await response.json()) as { detail: string }).detail
        : `${response.status}`
    }
    const hooks = { suspend: { port: 80 }, resume: hook('true') }
    expect(await refusalOf({ swap_method: 'hooks', swap_hooks: hooks })).toContain(
      'swap_hooks.suspend must be a command, or a port and a path',
    )
    expect(await refusalOf({ swap_hooks: { suspend: hook('true'), resume: hook('true') } })).toContain(
      'swap_hooks needs swap_method hooks',
    )
    expect(await refusalOf({ swap_method: 'hooks', command: undefined })).toContain('needs a command')
    expect(await refusalOf({ swap_method: 'engine' })).toContain('swap_engine is required')
    const level = { kind: 'sglang', port: 80, level: 1 }
    expect(await refusalOf({ swap_method: 'engine', swap_engine: level })).toContain('is for vllm only')
  })

  it('of swap_method none is a noswap task', async () => {
    const id = await submit('stays', { vram_mib: 100, swap_method: 'none', command: ['sleep', '100'] })
    expect(await taskOf(id)).toMatchObject({ noswap: 1 })
    await end(id)
  })
})

function stoppedOf(id: string): boolean {
  const started = readFileSync(join(cluster.path('gpu'), `guards/${id}.1/started`), 'utf8')
  return stateOf(Number(/^command (\d+)/m.exec(started)?.[1])) === 'T'
}

async function answersAtAll(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  )
}
