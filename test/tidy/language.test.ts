import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { BANNED } from './banned-words.ts'
import { textsOfSource, type Text } from './texts.ts'

/** The Unix user of that name: alone, or in a line of /etc/passwd. */
const UNIX_USER = /^nobody$|\bnobody(?=:)/g
const MARK = new RegExp(`\\b(?:${BANNED.join('|')})(?![\\w-])`, 'giu')
/** Space within a text, including the beginning of a line of a comment. */
const SPACE = /\s+(?:\*|\/\/)?\s*/g
/** Texts of ours; data, licences and what other tools write are left out. */
const READ =
  /\.(?:ts|tsx|mjs|js|md|sh|service|example)$|\.(?:scenario|exercise)\.yaml$|^(?:Makefile|Dockerfile)$/
const LEFT_OUT = /^test\/tidy\/|^LICENSE|^test\/fixtures\//

function offences(path: string): readonly string[] {
  const source = readFileSync(path, 'utf8')
  // Parsing a source is slow, and few sources have one of the words anywhere.
  if (
    source
      .replaceAll(/\\[nrt]/g, ' ')
      .replaceAll(SPACE, ' ')
      .search(MARK) === -1
  )
    return []
  const texts: readonly Text[] = /\.(?:tsx?|mjs|js)$/.test(path)
    ? textsOfSource(path, source)
    : source.split('\n').map((text, i) => ({ line: i + 1, text }))
  return texts.flatMap(({ line, text }) =>
    [...text.replaceAll(UNIX_USER, '').replaceAll(SPACE, ' ').matchAll(MARK)].map(
      (match) => `${path}:${line}: ${match[0]}`,
    ),
  )
}

it('Comments, documents, messages and test titles keep to plain language', () => {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
  const read = files.split('\n').filter((path) => READ.test(path) && !LEFT_OUT.test(path))
  expect(read.length).toBeGreaterThan(1000)
  const found = read.flatMap(offences)
  expect(found, `${found.length} places use words that test/tidy/banned-words.ts bans`).toEqual([])
})
