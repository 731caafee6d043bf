/** Guards whose task would run in a container: what is left when the container does not come. */
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import type { LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { isStatic } from '../../gpu-server/guard/is-static.ts'
import { FakeEngine, fakeContainers } from '../support/fake-engine.ts'
import {
  guardWorld,
  isGone,
  newGuardFolder,
  shellSpec,
  startGuardServer,
  until,
  type GuardWorld,
} from '../support/guard-world.ts'

const LONG_MS = 600_000

let engine: FakeEngine
beforeEach(async () => {
  engine = await new FakeEngine().start()
})
afterEach(() => engine.end())

async function world(): Promise<GuardWorld> {
  const folder = newGuardFolder()
  return guardWorld({ folder, containers: fakeContainers(engine.socketPath, folder) })
}

function contained(folder: string, more: Partial<LaunchSpec> = {}): LaunchSpec {
  mkdirSync(`${folder}/work`)
  return shellSpec('boxed', `touch ${folder}/ran`, {
    workingDirectory: `${folder}/work`,
    container: { image: 'team/train:1', devices: [], epoch: 1, mounts: [] },
    ...more,
  })
}

const refuseStart = ({ path }: { readonly path: string }) =>
  path.endsWith('/start') ? { status: 500, body: { message: 'no space' } } : null

it('The guard that is built here needs no library of a container; Node does', async () => {
  expect(await isStatic(await guardProgram())).toBe(true)
  expect(await isStatic(process.execPath)).toBe(false)
  expect(await isStatic(import.meta.filename)).toBe(false)
})

describe('a task of a container', () => {
  it('whose container does not start leaves neither process, folder nor container', async () => {
    const { folder, guards } = await world()
    engine.answer = refuseStart
    expect(await guards.launch(contained(folder))).toEqual({
      error: 'container: no space',
      refused: { cause: 'task', code: 'container_not_started' },
    })
    expect(readdirSync(`${folder}/guards`)).toEqual([])
    expect([...engine.containers.keys()]).toEqual([])
    expect(existsSync(`${folder}/ran`)).toBe(false)
  })

  it('whose image is missing makes no container, and runs nothing on the host', async () => {
    const { folder, guards } = await world()
    engine.images.clear()
    expect(await guards.launch(contained(folder))).toMatchObject({
      refused: { cause: 'task', code: 'image_not_available' },
    })
    expect(engine.callsOf('POST', /./)).toEqual([])
    expect(existsSync(`${folder}/ran`)).toBe(false)
  })

  it('on a server without an engine is refused as a reason of the host', async () => {
    const plain = await guardWorld()
    expect(await plain.guards.launch(contained(plain.folder))).toEqual({
      error: 'this server runs no containers',
      refused: { cause: 'host', code: 'no_container_runtime' },
    })
  })

  it('has the name of its container on disk before the engine hears it', async () => {
    const { folder, guards } = await world()
    const stored: unknown[] = []
    engine.answer = (call) => {
      if (call.path === '/containers/create') {
        const text = readFileSync(`${folder}/guards/boxed.1/task.json`, 'utf8')
        stored.push((JSON.parse(text) as { readonly container: string }).container, call.query.get('name'))
      }
      return refuseStart(call)
    }
    await guards.launch(contained(folder))
    expect(stored).toEqual([expect.stringMatching(/^headroom-[0-9a-f]{12}$/), stored[0]])
  })

  it('whose server is killed while it waits for the container runs nothing', async () => {
    const folder = newGuardFolder()
    engine.answer = ({ path }) => (path.endsWith('/start') ? 'never' : null)
    const server = await startGuardServer(folder, true, undefined, engine.socketPath)
    await server.ask({ call: 'lease', untilMono: bootTime() + LONG_MS, lengthMs: LONG_MS })
    server.ask({ call: 'launch', spec: contained(folder) }).catch(() => {})
    const socket = `${folder}/guards/boxed.1/init`
    await until('its guard waits', () => engine.callsOf('POST', /start$/).length === 1 && existsSync(socket))
    const [, pid = ''] = /^guard (\d+) /m.exec(readFileSync(`${folder}/guards/boxed.1/guard`, 'utf8')) ?? []
    server.child.kill('SIGKILL')
    await until('its guard has ended', () => isGone(Number(pid)))
    expect(existsSync(socket)).toBe(false)

    expect([...engine.containers.keys()]).toHaveLength(1)
    const again = await guardWorld({ folder, containers: fakeContainers(engine.socketPath, folder) })
    expect(await again.guards.adopt()).toEqual([])
    await until('its container is removed', () => engine.containers.size === 0)
    expect(existsSync(`${folder}/ran`)).toBe(false)
  })
})
