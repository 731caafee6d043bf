/** Authentication of the bus and the broker, and the subjects that the broker forbids. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { natsSettings } from '../../services/settings/nats-settings.ts'
import type { RequestOutcome } from '../../controller/ports/bus.ts'
import { aHeartbeat } from '../support/bus-contract.ts'
import { makeCertificates } from '../support/certificates.ts'
import type { Certificates } from '../support/certificates.ts'
import { envelopeOf } from '../support/envelopes.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { natsBus, settled, until } from '../support/nats-world.ts'
import type { WatchedBus } from '../support/nats-world.ts'

const started: NatsServer[] = []
const broker = async (config: string): Promise<NatsServer> => {
  const server = await startNatsServer(config)
  started.push(server)
  return server
}
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.kill()))
})

/** As in a process: from the environment. */
function busFrom(server: NatsServer, env: Readonly<Record<string, string>>, scheme = 'nats'): WatchedBus {
  const settings = natsSettings({ CONTROLLER_NATS_URL: `${scheme}://127.0.0.1:${server.port}`, ...env })
  if (settings === null) throw new Error('no settings')
  return natsBus('', settings)
}

const isUp = (bus: WatchedBus): Promise<void> => until('it is connected', () => bus.isConnected)
const isRefused = async (bus: WatchedBus, why: RegExp): Promise<void> => {
  await until(`it is refused: ${why}`, () => bus.states.length > 0)
  expect(bus.states[0]).toMatch(why)
  expect(bus.isConnected).toBe(false)
}

describe.skipIf(whyNoNatsServer() !== null)('a login at a real broker', () => {
  test('with a wrong password is reported in one line without it, and retried', async () => {
    const server = await broker('authorization { user: controller, password: right }')
    const bus = busFrom(server, {
      CONTROLLER_NATS_USER: 'controller',
      CONTROLLER_NATS_PASSWORD: 'open-sesame',
    })
    await isRefused(bus, /^disconnected cannot connect: .*Authorization Violation/i)
    expect(bus.states.join()).not.toMatch(/sesame|\n/)
    await server.restart('authorization { user: controller, password: open-sesame }')
    await isUp(bus)
  })

  test('works with a password, a token and an nkey', async () => {
    const byPassword = await broker('authorization { user: controller, password: "s3cret" }')
    await isUp(
      busFrom(byPassword, { CONTROLLER_NATS_USER: 'controller', CONTROLLER_NATS_PASSWORD: 's3cret' }),
    )
    const byToken = await broker('authorization { token: "t0ken" }')
    await isUp(busFrom(byToken, { CONTROLLER_NATS_TOKEN: 't0ken' }))
    const user = nkeys.createUser()
    const byNkey = await broker(`authorization { users: [ { nkey: ${user.getPublicKey()} } ] }`)
    const file = join(byNkey.folder, 'user.nk')
    writeFileSync(file, user.getSeed())
    await isUp(busFrom(byNkey, { CONTROLLER_NATS_NKEY_FILE: file }))
    writeFileSync(file, nkeys.createUser().getSeed())
    await isRefused(busFrom(byNkey, { CONTROLLER_NATS_NKEY_FILE: file }), /Authorization Violation/i)
  })

  test('reports forbidden subjects, and a forbidden request has no responder', async () => {
    const permissions = '{ publish: "may.>", subscribe: ["_INBOX_node.>", "hears.>"] }'
    const server = await broker(
      `authorization { users: [ { user: node, password: p, permissions: ${permissions} } ] }`,
    )
    const bus = busFrom(server, { CONTROLLER_NATS_USER: 'node', CONTROLLER_NATS_PASSWORD: 'p' })
    await isUp(bus)
    bus.subscribe('other.commands', () => {})
    const outcome = await new Promise<RequestOutcome>((resolve) => {
      bus.request('not.mine', envelopeOf(aHeartbeat('a')), 10_000, resolve)
    })
    expect(outcome).toEqual({ answered: false, why: 'no_responder' })
    await until('both are told', () => bus.denied.length === 2)
    expect(bus.denied).toEqual(['subscription other.commands', 'publish not.mine'])
    expect(bus.counts.denied).toBe(2)
  })

  describe('a connection with TLS', () => {
    const folder = mkdtempSync(join(tmpdir(), 'headroom-tls-'))
    let good: Certificates
    let elsewhere: Certificates
    beforeAll(() => {
      good = makeCertificates(mkdtempSync(join(folder, 'a-')), 'IP:127.0.0.1')
      elsewhere = makeCertificates(mkdtempSync(join(folder, 'b-')), 'DNS:localhost,DNS:broker.example')
    })
    afterAll(() => rmSync(folder, { recursive: true }))
    const secured = (certificates: Certificates, more = ''): Promise<NatsServer> =>
      broker(
        `tls { cert_file: "${certificates.serverCert}", key_file: "${certificates.serverKey}", ${more} }`,
      )

    test('trusts a broker with a certificate of our authority for its address', async () => {
      const server = await secured(good)
      const bus = busFrom(server, { CONTROLLER_NATS_TLS_CA: good.ca })
      await isUp(bus)
      await settled(bus)
      await isRefused(busFrom(server, {}, 'tls'), /cannot connect: .*(self-signed|unable to)/)
      await isRefused(
        busFrom(server, { CONTROLLER_NATS_TLS_CA: elsewhere.ca }),
        /cannot connect: .*(self-signed|unable to|signature)/,
      )
    })

    test('refuses a broker whose certificate has another name', async () => {
      await isRefused(busFrom(await secured(elsewhere), { CONTROLLER_NATS_TLS_CA: elsewhere.ca }), /altnames/)
    })

    test('refuses a broker without TLS if TLS is required', async () => {
      await isRefused(busFrom(await broker(''), {}, 'tls'), /does not support 'tls'/)
    })

    test('presents the client certificate that a broker requires', async () => {
      const server = await secured(good, `ca_file: "${good.ca}", verify: true`)
      const env = { CONTROLLER_NATS_TLS_CA: good.ca }
      await isUp(
        busFrom(server, {
          ...env,
          CONTROLLER_NATS_TLS_CERT: good.clientCert,
          CONTROLLER_NATS_TLS_KEY: good.clientKey,
        }),
      )
      await isRefused(busFrom(server, env), /^disconnected/)
    })
  })
})
