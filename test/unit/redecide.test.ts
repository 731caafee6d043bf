import { beforeAll, describe, expect, it } from 'vitest'
import { decisionText } from '../../cli/sim/sim-redecide.ts'
import type { RecordedEntry } from '../../controller/ports/recording-log.ts'
import { COMMAND_NAMES } from '../../controller/recording/recorded-commands.ts'
import { NOT_RECORDED } from '../../controller/recording/without-secrets.ts'
import { redecide } from '../../simulator/experiment/recording/redecide.ts'
import { FaultWorld } from '../support/fault-world.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const SECRET = 'password-of-a-user'
const IDLE = { kind: 'phases', phases: [[1_000, 30_000], [1_000, 0]] } as const // prettier-ignore

let recording: readonly RecordedEntry[] = []
let text = ''

/**
 * Two tasks on one GPU with room for one, so that they alternate; a restart in between; a lease; commands of
 * an operator.
 */
beforeAll(async () => {
  const tape = new RecordingInMemory()
  const world = new FaultWorld({
    nodes: 2,
    config: { default_vram_overcommit_percent: 100 },
    commitMs: 5,
    watch: tape.recorder,
  })
  await world.startAll()
  for (const id of ['a', 'b', 'c', 'd'])
    world.submit({ id, ms: 0, vramMib: 700, work: IDLE, command: ['run', SECRET] })
  world.submit({ id: 'lease', ms: 60_000, vramMib: 100, command: null })
  await world.run(12_000)
  world.restartController()
  await world.run(3_000)
  const { commands, access } = world.controller
  const nothing = (): void => {}
  access.create(
    {
      id: 't',
      name: 't',
      role: 'admin',
      secretHash: SECRET,
      createdAt: 0,
      createdBy: null,
      expiresAt: null,
      lastUsedAt: null,
    },
    nothing,
  )
  commands.submitOnce(
    {
      id: null,
      name: 'once',
      vramMib: 100,
      gpuCount: 1,
      gpuMode: 'shared',
      noswap: 0,
      priority: 2,
      groups: [],
      labels: {},
      owner: 'ann',
      command: ['x', SECRET],
      maxRuntimeSeconds: 5,
      onNodeLoss: 'wait',
    },
    { key: 'k', body: 'b' },
    nothing,
  )
  commands.keepalive('lease', true, nothing)
  commands.putConfig({ default_vram_overcommit_percent: 150 }, 'ann', nothing)
  commands.setCordon(world.idOf('n1'), true, 'ann', nothing)
  await world.run(60_000)
  recording = tape.entries()
  text = tape.lines.join('\n')
  expect(tape.nested).toBe(0)
})

describe('a recording that is decided again', () => {
  it('has equal decisions, across a restart', async () => {
    const again = await redecide(recording)
    expect(again).toMatchObject({ difference: null, starts: 2 })
    expect(again.decisions).toBeGreaterThan(5)
    const kinds = new Set(
      recording.flatMap((entry) => (entry.k === 'commit' ? entry.decisions.map(({ kind }) => kind) : [])),
    )
    expect([...kinds]).toEqual(expect.arrayContaining(['placement', 'swap_out', 'swap_in']))
  })

  it('contains every kind of input, and no command line or token', () => {
    const kinds = new Set(recording.map(({ k }) => k))
    expect([...kinds]).toEqual(
      expect.arrayContaining([
        'start',
        'loaded',
        'durable',
        'timer',
        'message',
        'outcome',
        'command',
        'access',
        'commit',
      ]),
    )
    expect(text).toContain(JSON.stringify(NOT_RECORDED))
    expect(text).not.toContain(SECRET)
  })

  it('supports every command', () => {
    expect(new Set(COMMAND_NAMES).size).toBe(COMMAND_NAMES.length)
  })

  it('shows both sides of a different decision', async () => {
    const changed = recording.map((entry) =>
      entry.k === 'commit'
        ? {
            ...entry,
            decisions: entry.decisions.map((each) =>
              each.kind === 'swap_out' ? { ...each, victimIds: ['d'] } : each,
            ),
          }
        : entry,
    )
    const { difference } = await redecide(changed)
    if (difference?.what !== 'decision' || difference.redecided === null)
      throw new Error(JSON.stringify(difference))
    expect(difference.recorded?.victimIds).toEqual(['d'])
    expect(difference.redecided.victimIds).not.toEqual(['d'])
    const shown = decisionText(difference.redecided)
    const [victim = ''] = difference.redecided.victimIds
    const { sentence } = difference.redecided
    for (const part of [sentence, ', rule victims_cover', `chosen: ${victim} on GPU `, 'missing: '])
      expect(shown).toContain(part)
    expect(decisionText(null)).toBe('nothing')
  })

  it('decides differently with another configuration', async () => {
    const changed = recording.map((entry) =>
      entry.k === 'start'
        ? { ...entry, initialConfig: { ...entry.initialConfig, default_vram_overcommit_percent: 0 } }
        : entry,
    )
    const { difference } = await redecide(changed)
    // The score of the chosen GPU differs first.
    if (difference?.what !== 'decision') throw new Error(JSON.stringify(difference))
    expect(decisionText(difference.recorded)).toContain('keys 1000 and 2000')
    expect(decisionText(difference.redecided)).toContain('keys 1000 and 1000')
  })

  it('differs if one of its inputs is missing', async () => {
    for (const kind of ['message', 'durable', 'timer', 'outcome', 'command', 'loaded'] as const) {
      const at = recording.findIndex(({ k }) => k === kind)
      const { difference } = await redecide(recording.toSpliced(at, 1))
      expect(difference, kind).not.toBeNull()
    }
  })

  it('differs if it has extra random numbers or too few', async () => {
    const more = recording.map((entry) =>
      entry.k === 'command' ? { ...entry, draws: [['x', 0.5]] as const } : entry,
    )
    expect((await redecide(more)).difference).toMatchObject({
      what: 'course',
      detail: expect.stringContaining('"x"') as string,
    })
    const less = recording.map((entry) => ('draws' in entry ? { ...entry, draws: [] } : entry))
    expect((await redecide(less)).difference).toMatchObject({ what: 'course' })
  })

  it('shows both sides of an event that is missing', async () => {
    const at = recording.findIndex(
      (entry) => entry.k === 'commit' && entry.events.length > 0 && entry.decisions.length === 0,
    )
    const entry = recording[at]
    if (entry?.k !== 'commit') throw new Error('no commit')
    const { difference } = await redecide(recording.with(at, { ...entry, events: [] }))
    expect(difference).toMatchObject({ what: 'event', recorded: null, redecided: entry.events[0] })
  })

  it('reports a command or start that this version does not support', async () => {
    const unknown: RecordedEntry = { k: 'command', at: 1_000_000, name: 'dance', args: [] }
    const atEnd = { ...unknown, at: (recording.at(-1) as { at: number }).at }
    expect((await redecide([...recording, atEnd])).difference).toMatchObject({
      detail: 'it has no command "dance"',
    })
    expect((await redecide([unknown])).difference).toMatchObject({ detail: 'no start is recorded before it' })
  })
})
