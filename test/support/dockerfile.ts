/** Parses a Dockerfile into stages and their instructions. */

export interface Instruction {
  readonly keyword: string
  readonly text: string
  readonly words: readonly string[]
}

export interface Stage {
  readonly name: string
  /** Another stage, or an image; arguments replaced by their defaults. */
  readonly from: string
  readonly instructions: readonly Instruction[]
}

/** By name, in order. Every stage must have a name. */
export function stagesOf(dockerfile: string): ReadonlyMap<string, Stage> {
  const stages = new Map<string, Stage>()
  const defaults = new Map<string, string>()
  let current: { name: string; from: string; instructions: Instruction[] } | null = null
  for (const { keyword, text, words } of instructionsOf(dockerfile)) {
    if (keyword === 'ARG' && current === null) {
      const [name, value] = text.split('=') as [string, string]
      defaults.set(name, value)
    } else if (keyword === 'FROM') {
      const [from, as, name] = words as [string, string?, string?]
      if (as !== 'AS' || name === undefined) throw new Error(`a stage without a name: FROM ${text}`)
      current = {
        name,
        from: from.replace(/\$\{(\w+)\}/, (_, argument: string) => defaults.get(argument) ?? ''),
        instructions: [],
      }
      stages.set(name, current)
    } else if (current === null) throw new Error(`${keyword} before the first FROM`)
    else current.instructions.push({ keyword, text, words })
  }
  return stages
}

function instructionsOf(dockerfile: string): readonly Instruction[] {
  const lines = dockerfile.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const whole = lines.join('\n').replaceAll(/\\\n/g, ' ').split('\n')
  return whole.map((line) => {
    const [keyword, text] = line.split(/ (.*)/s) as [string, string]
    return { keyword, text, words: text.split(/\s+/) }
  })
}
