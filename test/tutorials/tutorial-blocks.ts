/**
 * The commands of a tutorial and their expected output, from its Markdown.
 *
 * - ```sh: typed into one shell of a clean Debian, in the order of the page.
 * - ```sh retry: repeated until its output is the expected one.
 * - ```sh checkout: run in the checkout of Headroom, before all others.
 * - ```text: the output of the block before it; `…` stands for any text, also of several lines.
 */
export interface Block {
  /** Line of the opening fence, from 1. */
  readonly line: number
  readonly where: 'debian' | 'checkout'
  readonly retry: boolean
  readonly commands: string
  readonly output: string | null
}

const FENCE = /^```(.*)\n([^]*?)^```$/gm

/** Throws on a fence of another kind: it would not be tested. */
export function blocksOf(markdown: string): readonly Block[] {
  const blocks: Block[] = []
  for (const { 1: info = '', 2: text = '', index } of markdown.matchAll(FENCE)) {
    const line = markdown.slice(0, index).split('\n').length
    const before = blocks.at(-1)
    if (info === 'text' && before?.output === null) blocks[blocks.length - 1] = { ...before, output: text }
    else if (/^sh( retry| checkout)?$/.test(info))
      blocks.push({
        line,
        where: info === 'sh checkout' ? 'checkout' : 'debian',
        retry: info === 'sh retry',
        commands: text,
        output: null,
      })
    else throw new Error(`line ${line}: a fence "${info}" is not tested here`)
  }
  return blocks
}

/** Returns whether the output is the expected one, the white space at line ends aside. */
export function isExpected(output: string, expected: string): boolean {
  const parts = trimmed(expected)
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*')}$`).test(trimmed(output))
}

function trimmed(text: string): string {
  return text.replace(/[ \t]+$/gm, '').trim()
}
