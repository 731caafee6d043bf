/** A sweep over several machines has the same bytes as on one machine, whichever worker runs or dies. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from '@nats-io/transport-node'
import { beforeAll, describe, expect, it } from 'vitest'
import { JetStream } from '../../services/sweep/nats/jetstream.ts'
import { FORMAT } from '../../services/sweep/nats/sweep-messages.ts'
import { DATA, JOBS, jobSubject, prepareBroker, WORKERS } from '../../services/sweep/nats/sweep-subjects.ts'
import { putBlob, getBlob } from '../../services/sweep/nats/blobs.ts'
import { digestsIn, untilThere } from '../support/folder-contents.ts'
import { busyScenario, headroom, temporaryFolder, write } from '../support/headroom-command.ts'
import { newFolder, startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { startHeadroom } from '../support/running-command.ts'

const whyNot = whyNoNatsServer()
const withJetStream = (): string => `jetstream { store_dir: "${newFolder()}" }`

const TRACE = [
  '{"trace":"few","version":1,"t_unit":"ms"}',
  '{"id":"a","at":0,"gpus":1,"vram_mib":9000,"work":{"kind":"duration","ms":600000}}',
  '',
].join('\n')
const SWEEP = 'sweep: { config.default_vram_overcommit_percent: [0, 100], seeds: 1..3 }\n'

describe.skipIf(whyNot !== null)('a sweep over a broker', () => {
  const folder = temporaryFolder()
  const path = (...parts: string[]): string => join(folder, ...parts)
  write(folder, 'few.trace.jsonl', TRACE)
  const busy = write(folder, 'busy.scenario.yaml', busyScenario(`  - { trace: few.trace.jsonl }\n${SWEEP}`))
  const set = ['--set', 'config.idle_swap_out_seconds=120,300']
  let broker: NatsServer
  beforeAll(async () => {
    broker = await startNatsServer(withJetStream())
    expect((await headroom(['sim', 'sweep', busy, ...set, '--out', path('here')])).code).toBe(0)
  })
  const sweep = (out: string): string[] => [
    'sim',
    'sweep',
    busy,
    ...set,
    '--out',
    path(out),
    '--workers',
    broker.url,
    // On a busy machine a worker may be silent for seconds: a job that is given again too early never ends.
    '--redeliver',
    '5s',
  ]
  const worker = (): ReturnType<typeof startHeadroom> =>
    startHeadroom(['sim', 'worker', '--nats', broker.url, '--jobs', '1'])
  const bytesOf = (out: string): Readonly<Record<string, string>> => digestsIn(path(out), ['timing.json'])

  it('has the same bytes when worker, broker and command are killed during a run', async () => {
    const [first, second] = [worker(), worker()]
    await Promise.all([first.says(/concurrent runs/), second.says(/concurrent runs/)])
    const started = startHeadroom(sweep('there'))
    await untilThere(path('there', 'runs'), '[!.]*/done.json', 1)
    first.process.kill('SIGKILL')
    await untilThere(path('there', 'runs'), '[!.]*/done.json', 3)
    started.process.kill('SIGKILL')
    await broker.restart()
    const { code, stderr } = await headroom(sweep('there'))
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^\d+ of 12 runs already exist in /)])
    expect(bytesOf('there')).toEqual(bytesOf('here'))
    second.process.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  })

  it('leaves no data on the broker', async () => {
    const connection = await connect({ servers: broker.url })
    const info = async (name: string): Promise<number> => {
      const answer = await connection.request(`$JS.API.STREAM.INFO.${name}`)
      return answer.json<{ state: { messages: number } }>().state.messages
    }
    expect([await info(JOBS), await info(DATA)]).toEqual([0, 0])
    await connection.close()
  })

  it('needs no file of the machine that started it', async () => {
    const started = startHeadroom([...sweep('moved'), '--no-journal', '--overcommit', '50', '--seeds', '9'])
    await started.says(/no worker is connected: start `headroom sim worker --nats nats:/)
    renameSync(path('few.trace.jsonl'), path('gone.trace.jsonl'))
    const late = worker()
    await untilThere(path('moved', 'runs'), '[!.]*/done.json', 1)
    renameSync(path('gone.trace.jsonl'), path('few.trace.jsonl'))
    expect(await started.ended, started.output()).toBe(0)
    late.process.kill('SIGTERM')
    await late.ended
  })

  it('reports the error of a failed run', async () => {
    writeFileSync(path('torn.trace.jsonl'), `${TRACE}{"id":"a"}\n`)
    const torn = write(folder, 'torn.scenario.yaml', busyScenario('  - { trace: torn.trace.jsonl }\n'))
    const helper = worker()
    const { code, stderr } = await headroom([
      'sim',
      'sweep',
      torn,
      '--overcommit',
      '0',
      '--workers',
      broker.url,
    ])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^torn\.trace\.jsonl:3: at: is missing$/m)])
    helper.process.kill('SIGTERM')
    await helper.ended
  })

  it('gives no job to a worker of another version, which reports it', async () => {
    const connection = await connect({ servers: broker.url })
    const stream = new JetStream(connection)
    await prepareBroker(stream, 1_000)
    const point = { sha256: '0'.repeat(64), bytes: 1, chunks: 1 }
    const run = {
      sweep: 'other',
      run: '0-s1',
      overcommit_percent: 0,
      seed: 1,
      point,
      files: 'none',
      silent_ms: 1_000,
    }
    const job = { format: FORMAT, version: '9.9.9', commit: null, ...run }
    await stream.publish(jobSubject('other', '0-s1'), JSON.stringify(job))
    const refused = worker()
    expect(await refused.ended).toBe(5)
    expect(refused.output()).toMatch(
      new RegExp(
        /this worker runs headroom [\d.]+.*, but the sweep other was started by headroom 9\.9\.9\. /.source +
          /Their results may differ, so this worker does not execute runs of the sweep/.source,
      ),
    )
    const again = await stream.next(JOBS, WORKERS, 5_000)
    expect(again?.deliveries).toBe(2)
    await again?.ack()
    await connection.close()
  })

  it('checks content against its hash, in any number of chunks', async () => {
    const connection = await connect({ servers: broker.url })
    const stream = new JetStream(connection)
    const noise = Buffer.from(
      Array.from({ length: 1_300_000 }, (_, i) => (i * 2_654_435_761 + (i >> 3) * 40_503) % 251),
    )
    const ref = await putBlob(stream, 's', 'blob', noise)
    expect((await getBlob(stream, 's', 'blob', ref)).equals(noise)).toBe(true)
    await expect(getBlob(stream, 's', 'blob', { ...ref, sha256: 'f'.repeat(64) })).rejects.toThrow(
      'is no longer on the broker',
    )
    const other = await putBlob(stream, 's', 'blob', Buffer.from('other'))
    await stream.publish(`headroom.sweep.data.s.blob.${other.sha256}.0`, readFileSync(busy).subarray(0, 10))
    await expect(getBlob(stream, 's', 'blob', other)).rejects.toThrow()
    await connection.close()
  })

  it('needs a broker with JetStream, and says so', async () => {
    const plain = await startNatsServer()
    const { code, stderr } = await headroom(['sim', 'worker', '--nats', plain.url])
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('the broker has no JetStream: start nats-server with -js'),
    ])
    await plain.kill()
    const none = await headroom(['sim', 'sweep', busy, '--overcommit', '0', '--workers', plain.url])
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining('no broker at nats://127.0.0.1:')])
  })
})
