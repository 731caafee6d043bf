import { describe, expect, it } from 'vitest'
import type { ControllerBody, Envelope, NodeBody } from '../../protocol/envelope.ts'
import type { LogChunk } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import { NodeReads } from '../../controller/wire/node-reads.ts'
import { createTaskLogs } from '../../controller/wire/task-logs.ts'
import type { TaskLogs } from '../../controller/ports/task-logs.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const NODE = '6b1f4a0e-0b5c-4e53-a7a7-8c6f7d1a2b3c'

function sealed(body: ControllerBody | NodeBody): Envelope {
  return {
    v: PROTOCOL_VERSION,
    id: '1',
    sent_mono: 0,
    boot: { counter: 1, random: 'a' },
    seq: 1,
    epoch: 1,
    body,
  }
}

function chunk(fields: Partial<LogChunk> = {}): LogChunk {
  const data = Buffer.from('hello').toString('base64')
  return {
    op: 'log',
    task_id: 't',
    attempt: 2,
    stream: 'stdout',
    offset: 10,
    data,
    is_ended: false,
    ...fields,
  }
}

interface Asked {
  readonly clock: VirtualClock
  readonly logs: TaskLogs
  readonly requests: Envelope[]
}

/** A server that gives every request this answer, or none if it is null. */
function serverThatSays(
  answer: ((request: Envelope) => NodeBody | ControllerBody) | null,
  mayAsk = true,
): Asked {
  const clock = new VirtualClock(0)
  const bus = plainBus(clock, 'wire', 1)
  const requests: Envelope[] = []
  bus.subscribe(nodeSubject(NODE, 'command'), (message, _subject, reply) => {
    requests.push(message)
    if (answer !== null) reply(sealed(answer(message)))
  })
  return { clock, logs: createTaskLogs(new NodeReads(bus, sealed, () => mayAsk)), requests }
}

describe('reading the output of a task', () => {
  it('requests the given bytes of the attempt from the server, and returns its answer', async () => {
    const { clock, logs, requests } = serverThatSays(() => chunk())
    const read = logs.read(NODE, 't', 2, 'stdout', 10, 5)
    clock.run(60_000, () => false)
    expect(await read).toEqual(chunk())
    expect(requests.map(({ body }) => body)).toEqual([
      { op: 'read_log', task_id: 't', attempt: 2, stream: 'stdout', offset: 10, max_bytes: 5 },
    ])
  })

  it('returns the end of the output, without data, for an offset beyond it', async () => {
    const { clock, logs } = serverThatSays(() => chunk({ offset: 4, data: '' }))
    const read = logs.read(NODE, 't', 2, 'stdout', 10, 5)
    clock.run(60_000, () => false)
    expect(await read).toMatchObject({ offset: 4, data: '' })
  })

  it.each([
    ['another attempt', { attempt: 1 }],
    ['another task', { task_id: 'u' }],
    ['another stream', { stream: 'stderr' as const }],
    ['bytes from before', { offset: 9 }],
    ['more than was asked for', { data: Buffer.from('hello, world').toString('base64') }],
  ])('refuses %s as an answer', async (_what, fields) => {
    const { clock, logs } = serverThatSays(() => chunk(fields))
    const read = logs.read(NODE, 't', 2, 'stdout', 10, 5)
    clock.run(60_000, () => false)
    expect(await read).toEqual({ refused: 'bad_answer' })
  })

  it('returns the reason of a refusal by the server', async () => {
    const { clock, logs } = serverThatSays(() => ({ op: 'refused', reason: 'unknown_attempt' }))
    const read = logs.read(NODE, 't', 2, 'stdout', 0, 5)
    clock.run(60_000, () => false)
    expect(await read).toEqual({ refused: 'unknown_attempt' })
  })

  it('sends nothing to a server that is ahead of the store', async () => {
    const { clock, logs, requests } = serverThatSays(() => chunk(), false)
    const [output, record] = [logs.read(NODE, 't', 2, 'stdout', 10, 5), logs.readRecord?.(NODE, 't', 2)]
    const place = logs.expectProcess?.(NODE, 't', 2, '0'.repeat(64))
    clock.run(60_000, () => false)
    expect([await output, await record, await place, requests]).toEqual([null, null, null, []])
  })

  it('ends after some seconds if the server does not answer', async () => {
    const { clock, logs } = serverThatSays(null)
    const read = logs.read(NODE, 't', 2, 'stdout', 0, 5)
    clock.run(60_000, () => false)
    expect(await read).toBeNull()
  })

  it('limits the number of concurrent reads of one server', async () => {
    const { clock, logs, requests } = serverThatSays(() => chunk({ offset: 0 }))
    const reads = Array.from({ length: 20 }, () => logs.read(NODE, 't', 2, 'stdout', 0, 5))
    clock.run(60_000, () => false)
    const answers = await Promise.all(reads)
    expect(requests).toHaveLength(8)
    expect(
      answers.filter(
        (answer) => answer !== null && 'refused' in answer && answer.refused === 'too_many_reads',
      ),
    ).toHaveLength(12)
    const again = logs.read(NODE, 't', 2, 'stdout', 0, 5)
    clock.run(120_000, () => false)
    expect(await again).toEqual(chunk({ offset: 0 }))
  })
})

describe('the process of a lease', () => {
  const answerTo = async (body: NodeBody) => {
    const { clock, logs } = serverThatSays(() => body)
    const place = logs.expectProcess?.(NODE, 't', 2, '0'.repeat(64))
    clock.run(60_000, () => false)
    return place
  }

  it('registers at the socket that its server names, unless the answer is about another one', async () => {
    const place = { op: 'process_expected', task_id: 't', attempt: 2, socket: '/run/x.sock' } as const
    expect(await answerTo(place)).toEqual({ socket: '/run/x.sock' })
    expect(await answerTo({ ...place, attempt: 1 })).toEqual({ refused: 'bad_answer' })
    expect(await answerTo({ op: 'refused', reason: 'no_process_expected' })).toEqual({
      refused: 'no_process_expected',
    })
  })
})
