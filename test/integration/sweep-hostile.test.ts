/** Sweep workers with the included broker configuration, and with messages that no sweep would send. */
import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, nkeyAuthenticator, type NatsConnection } from '@nats-io/transport-node'
import { beforeAll, describe, expect, it } from 'vitest'
import { packageVersion } from '../../services/package-info.ts'
import { putBlob } from '../../services/sweep/nats/blobs.ts'
import { JetStream } from '../../services/sweep/nats/jetstream.ts'
import { FORMAT } from '../../services/sweep/nats/sweep-messages.ts'
import {
  DATA,
  DEAD,
  DEAD_SUBJECT,
  JOBS,
  jobSubject,
  MAX_DEAD_LETTERS,
  prepareBroker,
  resultSubject,
} from '../../services/sweep/nats/sweep-subjects.ts'
import { busyScenario, headroom, temporaryFolder, write } from '../support/headroom-command.ts'
import { freePort } from '../support/free-port.ts'
import { newFolder, startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import { startHeadroom } from '../support/running-command.ts'

const SWEEP = '0123456789abcdef01234567'

describe.skipIf(whyNoNatsServer() !== null)('A sweep worker', () => {
  const folder = temporaryFolder()
  const out = join(folder, 'nats.conf')
  const key = (name: string): string => join(folder, 'keys', `${name}.nk`)
  let url: string

  beforeAll(async () => {
    const port = await freePort()
    url = `nats://127.0.0.1:${port}`
    const args = [
      'nats',
      'config',
      '--workers',
      'w1',
      '--jetstream-dir',
      newFolder(),
      '--listen',
      `127.0.0.1:${port}`,
    ]
    expect(await headroom([...args, '-o', out])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('worker-w1') as string,
    })
    await startNatsServer(readFileSync(out, 'utf8'), port)
  })

  const as = async (name: string): Promise<NatsConnection> => {
    const seed = readFileSync(key(name), 'utf8').trim()
    const publicKey =
      new RegExp(`# ${name}\\n *\\{\\n *nkey: (U[A-Z2-7]{55})`).exec(readFileSync(out, 'utf8'))?.[1] ?? ''
    return connect({
      servers: url,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)),
      inboxPrefix: `_INBOX_${publicKey}`,
    })
  }
  const worker = () =>
    startHeadroom(['sim', 'worker', '--nats', url, '--jobs', '1'], {
      CONTROLLER_NATS_NKEY_FILE: key('worker-w1'),
    })

  it(
    'waits for a first sweep, runs it with its own permissions, and survives invalid jobs',
    { timeout: 300_000 },
    async () => {
      const helper = worker()
      await helper.says(/no sweep has been started on this broker yet/)
      const sweeper = await as('sweep')
      const stream = new JetStream(sweeper)
      await prepareBroker(stream, 1_000)
      await stream.publish(jobSubject('s', 'x'), 'x')
      await stream.publish(
        jobSubject('s', 'y'),
        JSON.stringify({ format: FORMAT, version: packageVersion(), run: '../../..' }),
      )
      await helper.says(
        /headroom\.sweep\.job\.s\.x: invalid job \(not JSON\): moved to headroom\.sweep\.dead/,
      )
      await helper.says(/headroom\.sweep\.job\.s\.y: invalid job \(member commit is missing/)

      // A trace whose suffix would lead out of the folder of the worker.
      const victim = join(tmpdir(), `headroom-pwned-${process.pid}`)
      const trace = await putBlob(stream, SWEEP, 'blob', Buffer.from('attacker chosen'))
      const traces = { 't.trace.jsonl': { ...trace, suffix: `/../../../../../../..${victim}` } }
      const point = { text: 'x', file: 'f', base_dir: '/', settings: {}, identity: {}, traces }
      const ref = await putBlob(stream, SWEEP, 'blob', Buffer.from(JSON.stringify(point)))
      const job = {
        format: FORMAT,
        version: packageVersion(),
        commit: null,
        sweep: SWEEP,
        run: '0-s1',
        overcommit_percent: 0,
        seed: 1,
      }
      await stream.publish(
        jobSubject(SWEEP, '0-s1'),
        JSON.stringify({ ...job, point: ref, files: 'none', silent_ms: 1_000 }),
      )
      await helper.says(
        /0-s1 failed: run 0-s1: invalid scenario: member traces\/suffix is missing or out of bounds/,
      )

      const busy = write(folder, 'busy.scenario.yaml', busyScenario())
      const sweep = [
        'sim',
        'sweep',
        busy,
        '--overcommit',
        '0,50',
        '--out',
        join(folder, 'made'),
        '--workers',
        url,
      ]
      expect(await headroom(sweep, { env: { CONTROLLER_NATS_NKEY_FILE: key('sweep') } })).toMatchObject({
        code: 0,
      })
      expect(existsSync(victim)).toBe(false)
      helper.process.kill('SIGTERM')
      expect(await helper.ended).toBe(0)
      await sweeper.close()
    },
  )

  it('has only its own permissions: the broker refuses everything else', async () => {
    const own = await as('worker-w1')
    const refused = async (subject: string, data = '{}'): Promise<boolean> =>
      own.request(subject, data, { timeout: 700 }).then(
        (answer) => answer.headers?.code === 503,
        () => true,
      )
    for (const subject of [
      jobSubject(SWEEP, '0-s2'),
      `headroom.sweep.data.${SWEEP}.blob.${'0'.repeat(64)}.0`,
      `$JS.API.STREAM.CREATE.OTHER`,
      `$JS.API.STREAM.UPDATE.${JOBS}`,
      `$JS.API.STREAM.DELETE.${JOBS}`,
      `$JS.API.STREAM.PURGE.${DATA}`,
      `$JS.API.STREAM.PURGE.${DEAD}`,
      `$JS.API.CONSUMER.CREATE.${DATA}`,
      `$JS.API.DIRECT.GET.${DATA}.${resultSubject(SWEEP, '0-s1')}`,
      'gpu.v1.leader',
    ]) {
      expect(await refused(subject), subject).toBe(true)
    }
    await own.request(DEAD_SUBJECT, '{}', { timeout: 5_000 })
    await own.close()
  })

  it('leaves a limited number of dead letters, the newest', async () => {
    const sweeper = await as('sweep')
    await prepareBroker(new JetStream(sweeper), 1_000)
    const own = await as('worker-w1')
    for (let letter = 0; letter < MAX_DEAD_LETTERS + 50; letter++) own.publish(DEAD_SUBJECT, '{}')
    const answer = await own.request(DEAD_SUBJECT, '{}', { timeout: 5_000 })
    expect(answer.json<{ stream: string }>().stream).toBe(DEAD)
    const limits = { discard: 'old', max_msgs: MAX_DEAD_LETTERS, max_bytes: 16_777_216 }
    const config = { name: DEAD, subjects: [DEAD_SUBJECT], storage: 'file', allow_direct: true, ...limits }
    const stream = await sweeper.request(`$JS.API.STREAM.UPDATE.${DEAD}`, JSON.stringify(config))
    expect(stream.json()).toMatchObject({ config: limits, state: { messages: MAX_DEAD_LETTERS } })
    await Promise.all([sweeper.close(), own.close()])
  })
})
