/** A host joins by itself: one command with a token, its own key, and no effect on the other hosts. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { natsSettings } from '../../services/settings/nats-settings.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { headroom, temporaryFolder, type Ended } from '../support/headroom-command.ts'
import { freePort } from '../support/free-port.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { natsBus, settled, until } from '../support/nats-world.ts'
import type { WatchedBus } from '../support/nats-world.ts'
import { startHeadroom, type RunningCommand } from '../support/running-command.ts'

const NAMES = Array.from({ length: 20 }, (_, i) => `gpu-${i + 1}`)
const TOKEN = /headroom node join (hre1\.[\w-]+)/

/** After it was connected: on a busy machine the first connection may need several tries. */
const lossesOf = ({ states }: WatchedBus): readonly string[] => {
  const isUp = (state: string): boolean => state.startsWith('connected')
  return states.slice(states.findIndex(isUp)).filter((state) => !isUp(state))
}

describe.skipIf(whyNoNatsServer() !== null)('headroom node enroll', () => {
  const folder = temporaryFolder()
  const conf = join(folder, 'nats.conf')
  const buses: WatchedBus[] = []
  let broker: NatsServer
  let listen: string

  const connect = async (keyFile: string): Promise<WatchedBus> => {
    const env = { CONTROLLER_NATS_URL: broker.url, CONTROLLER_NATS_NKEY_FILE: keyFile }
    const bus = natsBus('', natsSettings(env) ?? expect.unreachable())
    buses.push(bus)
    await until(`${keyFile} is connected`, () => bus.isConnected)
    return bus
  }
  const configure = (): Promise<Ended> =>
    headroom(['nats', 'config', '--nodes', NAMES.join(','), '-o', conf, '--listen', listen])
  const atBroker = (): readonly string[] => ['-o', conf, '--reload', `kill -HUP ${broker.pid()}`]
  const enroll = (name: string, ...more: readonly string[]): RunningCommand =>
    startHeadroom(['node', 'enroll', name, ...atBroker(), '--nats', broker.url, ...more])
  const tokenOf = async (command: RunningCommand): Promise<string> => {
    await command.says(TOKEN)
    return TOKEN.exec(command.output())?.[1] ?? ''
  }
  const joinWith = (token: string, dir: string): Promise<Ended> =>
    headroom(['node', 'join', token, '--dir', join(folder, dir)])

  beforeAll(async () => {
    const port = await freePort()
    listen = `127.0.0.1:${port}`
    expect(await configure()).toMatchObject({ code: 0 })
    broker = await startNatsServer(`include "../${basename(folder)}/nats.conf"`, port)
  })
  afterAll(async () => {
    await Promise.all(buses.map((bus) => bus.close()))
    await broker.kill()
  })

  it('adds host 21 while 20 are connected, and none of them is dropped', async () => {
    const controller = await connect(join(folder, 'keys/controller.nk'))
    controller.subscribe(nodeSubject('*', 'hello'), (message, _subject, reply) => reply(message))
    await settled(controller)
    const running = await Promise.all(NAMES.map((name) => connect(join(folder, `keys/node-${name}.nk`))))
    const command = enroll('gpu-21')
    const token = await tokenOf(command)
    expect(await joinWith(token, 'host-21')).toMatchObject({ code: 0, stderr: '' })
    expect(await command.ended).toBe(0)

    const key = join(folder, 'host-21/node.nk')
    expect(statSync(key).mode & 0o777).toBe(0o600)
    expect(existsSync(join(folder, 'keys/node-gpu-21.nk'))).toBe(false)
    expect(readFileSync(join(folder, 'host-21/gpu-server.env'), 'utf8')).toBe(
      `CONTROLLER_NATS_URL=${broker.url}\nCONTROLLER_NATS_NKEY_FILE=${key}\nNODE_NAME=gpu-21\n` +
        `NODE_ID=${nodeIdFromName('gpu-21')}\n`,
    )
    await connect(key)
    expect([controller, ...running].flatMap(lossesOf)).toEqual([])
    expect([controller, ...running].every(({ isConnected }) => isConnected)).toBe(true)
    expect(readFileSync(conf, 'utf8')).not.toMatch(/joining|enrolling/)

    expect(await joinWith(token, 'thief')).toMatchObject({ code: 3 })
  })

  it('keeps an enrolled host when the list of the others is written again', async () => {
    expect(await configure()).toMatchObject({ code: 0 })
    expect(readFileSync(conf, 'utf8')).toContain('# node-gpu-21\n')
    expect(await headroom(['node', 'enroll', 'gpu-21', ...atBroker()])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('already has a key for gpu-21') as string,
    })
  })

  it('refuses a token after its time', async () => {
    const late = enroll('gpu-22', '--valid-for', '1s')
    const token = await tokenOf(late)
    expect(await late.ended).toBe(1)
    expect(await joinWith(token, 'late')).toMatchObject({ code: 3 })
    expect(readFileSync(conf, 'utf8')).not.toContain('gpu-22')
  })

  it('disconnects a host that is unenrolled, and no other', async () => {
    const [gone, other] = [
      await connect(join(folder, 'host-21/node.nk')),
      await connect(join(folder, 'keys/node-gpu-1.nk')),
    ]
    expect(await headroom(['node', 'unenroll', 'gpu-21', ...atBroker()])).toMatchObject({ code: 0 })
    await until('the host is disconnected', () => !gone.isConnected)
    expect([other.isConnected, lossesOf(other)]).toEqual([true, []])
    expect(await headroom(['node', 'unenroll', 'gpu-21', ...atBroker()])).toMatchObject({ code: 2 })
  })
})
