/** A command line loads the declaration of its own command; everything else needs those of all commands. */
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { PARTS, programOf } from '../../cli/program.ts'

const namesOf = ({ commands }: Command): string[] => commands.map((command) => command.name())
const helpOf = (program: Command, name: string): string | undefined =>
  program.commands.find((command) => command.name() === name)?.helpInformation()

describe('the program of a command line', () => {
  it.each(PARTS.map((part) => [part.names.join(', '), part] as const))(
    'declares %s by the names under which they are found',
    async (_, { names, load }) => {
      const program = new Command()
      const declare = await load()
      declare(program, () => {})
      expect(namesOf(program)).toEqual(names)
    },
  )

  it('has one command, with the same help as in the program of all commands', async () => {
    const all = await programOf(() => {})
    for (const { names } of PARTS) {
      for (const name of names) {
        const alone = await programOf(() => {}, [name, '--help'])
        expect(namesOf(alone)).toEqual(names)
        expect(helpOf(alone, name)).toBe(helpOf(all, name))
      }
    }
  })

  it.each([[[]], [['help', 'sim']], [['--version']], [['sims']], [['completion', 'bash']]])(
    'has all commands for the words %j',
    async (args) => {
      const whole = namesOf(await programOf(() => {}))
      expect(namesOf(await programOf(() => {}, args))).toEqual(whole)
      expect(whole).toEqual(expect.arrayContaining(PARTS.flatMap(({ names }) => names)))
    },
  )
})
