/** Keys of the broker: replaced by `headroom nats rotate`, and distributed one by one. */
import { cpSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { natsSettings } from '../../services/settings/nats-settings.ts'
import { headroom, temporaryFolder, type Ended } from '../support/headroom-command.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { natsBus, until } from '../support/nats-world.ts'
import type { WatchedBus } from '../support/nats-world.ts'

const folder = temporaryFolder()
const conf = join(folder, 'nats.conf')
const keyOf = (name: string): string => join(folder, `keys/${name}.nk`)
let broker: NatsServer | null = null
afterEach(() => broker?.kill())

/** Without its address: the test chooses a port. */
function configuration(): string {
  return readFileSync(conf, 'utf8').replace(/^listen: .*$/m, '')
}

function bus(file: string): WatchedBus {
  const settings = natsSettings({ CONTROLLER_NATS_URL: broker?.url ?? '', CONTROLLER_NATS_NKEY_FILE: file })
  if (settings === null) throw new Error('no settings')
  return natsBus('', settings)
}

describe.skipIf(whyNoNatsServer() !== null)('headroom nats rotate', () => {
  it('replaces the key of one party: the reload invalidates only the old key', async () => {
    await headroom(['nats', 'config', '--nodes', 'a,b', '--clients', 'lab', '-o', conf])
    broker = await startNatsServer(configuration())
    const names = ['controller', 'node-a', 'node-b', 'client-lab']
    const [before, keptBefore] = [
      readFileSync(keyOf('node-a'), 'utf8'),
      names.map((name) => readFileSync(keyOf(name), 'utf8')),
    ]
    const old = join(folder, 'old.nk')
    cpSync(keyOf('node-a'), old)
    expect(await headroom(['nats', 'rotate', 'node-a', '-o', conf])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('reload') as string,
    })
    expect(readFileSync(keyOf('node-a'), 'utf8')).not.toBe(before)
    expect(statSync(keyOf('node-a')).mode & 0o777).toBe(0o600)
    expect(names.filter((name, i) => readFileSync(keyOf(name), 'utf8') !== keptBefore[i])).toEqual(['node-a'])

    await broker.reload(configuration())
    const renewed = bus(keyOf('node-a'))
    await until('the new key is let in', () => renewed.isConnected)
    const late = bus(old)
    await until('the old key is refused', () => late.states.length > 0)
    expect(late.states[0]).toMatch(/Authorization Violation/i)
    const other = bus(keyOf('node-b'))
    await until('the key of another is let in', () => other.isConnected)
  })

  it('replaces every key with --all, and refuses an unknown party before any change', async () => {
    const read = (): readonly string[] =>
      readdirSync(join(folder, 'keys')).map((name) => readFileSync(join(folder, 'keys', name), 'utf8'))
    const before = [readFileSync(conf, 'utf8'), ...read()]
    expect(await headroom(['nats', 'rotate', 'node-a', 'node-x', '-o', conf])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /has no identity node-x; known identities: controller, node-a, node-b, client-lab\n$/,
      ) as string,
    })
    expect(await headroom(['nats', 'rotate', '-o', conf])).toMatchObject({ code: 2 })
    expect([readFileSync(conf, 'utf8'), ...read()]).toEqual(before)
    expect(await headroom(['nats', 'rotate', '--all', '-o', conf])).toMatchObject({ code: 0 })
    const after = [readFileSync(conf, 'utf8'), ...read()]
    expect(after.filter((text) => before.includes(text))).toEqual([])
    broker = await startNatsServer(configuration())
    const controller = bus(keyOf('controller'))
    await until('the controller is let in', () => controller.isConnected)
  })
})

describe('headroom nats config', () => {
  it('gives each of several controllers a key of its own, which is replaced alone', async () => {
    const place = temporaryFolder()
    const out = join(place, 'nats.conf')
    const keyIn = (name: string): string => readFileSync(join(place, `keys/${name}.nk`), 'utf8')
    await headroom(['nats', 'config', '--controllers', 'a,b', '--nodes', 'x', '-o', out])
    expect(readdirSync(join(place, 'keys'))).toEqual(['controller-a.nk', 'controller-b.nk', 'node-x.nk'])
    // Each may send commands to every node.
    expect(readFileSync(out, 'utf8').split('"gpu.v1.node.*.command"')).toHaveLength(3)
    const before = [keyIn('controller-a'), keyIn('controller-b')]
    expect(await headroom(['nats', 'rotate', 'controller-a', '-o', out])).toMatchObject({ code: 0 })
    expect(keyIn('controller-a')).not.toBe(before[0])
    expect(keyIn('controller-b')).toBe(before[1])
  })

  it('leaves each container a folder with only its own key, with --key-copies', async () => {
    const place = temporaryFolder()
    const copies = join(place, 'gpu-server')
    mkdirSync(copies)
    writeFileSync(join(copies, 'node-before.nk'), 'of an earlier run')
    const config = ['nats', 'config', '--nodes', 'a,b', '-o', join(place, 'nats.conf'), '--key-copies']
    expect(await headroom([...config, `node-a=${copies}`])).toMatchObject({ code: 0 })
    expect(readdirSync(copies)).toEqual(['node-a.nk'])
    expect(readFileSync(join(copies, 'node-a.nk'), 'utf8')).toBe(
      readFileSync(join(place, 'keys/node-a.nk'), 'utf8'),
    )
    expect(statSync(join(copies, 'node-a.nk')).mode & 0o777).toBe(0o440)
    expect(await headroom([...config, `node-c=${copies}`])).toMatchObject({ code: 2 })
  })

  it('creates and later removes a fleet key in a trial store only, with --trial-fleets', async () => {
    const place = temporaryFolder()
    const [copies, conf] = [join(place, 'sim'), join(place, 'nats.conf')]
    const config = (kind: string): Promise<Ended> =>
      headroom(
        [
          'nats',
          'config',
          '--nodes',
          'a',
          '--trial-fleets',
          'sim',
          '--key-copies',
          `fleet-sim=${copies}`,
          '-o',
          conf,
        ],
        {
          env: { CONTROLLER_STORE_KIND: kind },
        },
      )
    const isKnown = (): boolean => readFileSync(conf, 'utf8').includes('# fleet-sim')
    for (const [kind, keys] of [
      ['live', []],
      ['trial', ['fleet-sim.nk']],
      ['live', []],
    ] as const) {
      expect(await config(kind)).toMatchObject({ code: 0 })
      expect([kind, readdirSync(copies), isKnown()]).toEqual([kind, keys, kind === 'trial'])
    }
  })

  it('writes a Secret and a workload for each node, readable by the owner, with --kubernetes', async () => {
    const place = temporaryFolder()
    await headroom([
      'nats',
      'config',
      '--nodes',
      'gpu-1,gpu-2',
      '--kubernetes',
      '-o',
      join(place, 'nats.conf'),
    ])
    expect(readdirSync(join(place, 'kubernetes'))).toEqual(['gpu-server-gpu-1.yaml', 'gpu-server-gpu-2.yaml'])
    for (const name of ['gpu-1', 'gpu-2']) {
      const file = join(place, `kubernetes/gpu-server-${name}.yaml`)
      expect(statSync(file).mode & 0o777).toBe(0o600)
      const documents = parseAllDocuments(readFileSync(file, 'utf8')).map(
        (document) => document.toJS() as { readonly kind: string },
      )
      const seed = readFileSync(join(place, `keys/node-${name}.nk`), 'utf8').trim()
      expect(documents[0]).toMatchObject({ kind: 'Secret', stringData: { 'node.nk': seed } })
      expect(documents[1]).toMatchObject({
        kind: 'DaemonSet',
        metadata: { name: `headroom-gpu-server-${name}` },
      })
    }
    expect(
      await headroom(['nats', 'config', '--nodes', 'GPU_1', '--kubernetes', '-o', join(place, 'nats.conf')]),
    ).toMatchObject({
      code: 2,
    })
  })
})
