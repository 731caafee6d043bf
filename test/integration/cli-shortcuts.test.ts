/** The short names of commands, and `headroom wait`, as processes with a fake engine. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { Command } from 'commander'
import { pathOf, shortcutOf } from '../../cli/command/command-shape.ts'
import { programOf } from '../../cli/program.ts'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi, deadAddress, type Asked } from '../support/asked.ts'
import { headroom as run, type Ended } from '../support/headroom-command.ts'

let api: Asked
const headroom = (...args: readonly string[]): Promise<Ended> => run(args, { env: { HEADROOM_URL: api.url } })

async function submitted(name: string): Promise<string> {
  const { code, stdout } = await headroom('submit', '--vram', '1Gi', '--name', name, '--', 'true')
  expect(code).toBe(0)
  return stdout.trim()
}

const commandsBelow = (command: Command): readonly Command[] =>
  command.commands.flatMap((child) => [child, ...commandsBelow(child)])

it('Every shortcut takes what its long form takes', async () => {
  const program = await programOf(() => {})
  const all = commandsBelow(program)
  const shape = (command: Command) => ({
    arguments: command.registeredArguments.map((argument) => argument.name()),
    options: command.options
      .map(({ flags }) => flags)
      .filter((flags) => command.name() !== 'run' || !/--(detach|timeout|fail-if-never-fits)/.test(flags)),
  })
  const shortcuts = all.filter((command) => shortcutOf(command) !== undefined)
  expect(shortcuts.map((command) => command.name())).toEqual([
    'submit',
    'ps',
    'explain',
    'logs',
    'wait',
    'cancel',
    'stop',
    'warm',
  ])
  for (const shortcut of shortcuts) {
    const long = all.find((command) => pathOf(command) === shortcutOf(shortcut)?.replace(' --detach', ''))
    expect(shape(shortcut), shortcut.name()).toEqual(long === undefined ? null : shape(long))
  }
})

describe('with a controller', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    api = await askedApi({ inVirtualTime: false })
    await api.world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
  })

  it('submit, list and cancel a task by short names', async () => {
    const id = await submitted('short')
    expect(api.world.open.get(id)?.spec.command).toEqual(['true'])
    expect((await headroom('ps', '--name', 'short')).stdout).toMatch(
      new RegExp(`^ID .*\n${id} +short +pending`),
    )
    expect((await headroom('stop', 'short')).stdout).toBe(`short (${id.slice(0, 8)}): cancelled\n`)
    expect((await headroom('task', 'show', 'short')).stdout).toContain('cancelled')
  })

  it('wait until all tasks have ended, and exit as the first task that failed', async () => {
    const ids = [await submitted('one'), await submitted('two'), await submitted('three')]
    const explained = api.world.explained
    const waiting = headroom('wait', ...ids)
    await expect.poll(() => api.world.explained).toBeGreaterThan(explained)
    for (const [at, id] of ids.entries()) {
      Object.assign(api.world.open.get(id) ?? {}, { exitCode: [0, 5, 6][at] })
      api.world.finish(id, at === 0 ? 'completed' : 'failed', at === 0 ? null : 'the task failed')
      api.world.happen(['task_finished', { taskId: id }])
    }
    expect(await waiting).toEqual({
      code: 5,
      stdout:
        `one (${ids[0]?.slice(0, 8)}): completed, exit code 0\n` +
        `two (${ids[1]?.slice(0, 8)}): failed, exit code 5\n` +
        `three (${ids[2]?.slice(0, 8)}): failed, exit code 6\n`,
      stderr: '',
    })
  })

  it('end a wait after its timeout with 124; the task continues', async () => {
    const id = await submitted('long')
    expect(await headroom('wait', 'long', '--timeout', '2s')).toEqual({
      code: 124,
      stdout: '',
      stderr: 'headroom: Timed out after 2s. The tasks continue.\n',
    })
    expect(api.world.open.has(id)).toBe(true)
    expect(await headroom('wait', 'long', '--timeout', '5')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--timeout.*90s/) as string,
    })
  })

  it('say at once that a task or a controller is missing', async () => {
    expect(await headroom('wait', 'none')).toMatchObject({
      code: 4,
      stderr: 'headroom: Task "none" not found.\n',
    })
    expect(await headroom('wait', '5f0c9a52-1d3e-4b7a-9c11-000000000009')).toMatchObject({ code: 4 })
    expect(await headroom('wait', 'x', '--server', await deadAddress())).toMatchObject({ code: 3 })
  })
})
