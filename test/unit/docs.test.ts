/** The operator's pages refer to existing files, test titles, environment variables, commands and routes. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { createApi } from '../../controller/api/server.ts'
import { WAIT_REASONS } from '../../controller/query/explain/explain-reasons.ts'
import { FakeController } from '../support/api-world.ts'
import { whyNotUnderstood } from '../support/command-lines.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGES = [
  'README.md',
  'docs/README.md',
  'docs/protocol.md',
  'docs/tutorials/first-task.md',
  'docs/tutorials/operate-a-cluster.md',
  'docs/operating.md',
  'docs/planning.md',
  'docs/security.md',
  'docs/metrics.md',
  'docs/recording.md',
  'docs/upgrade.md',
  'docs/trace-format.md',
  'docs/testing.md',
  'docs/scenario-format.md',
  'scenarios/README.md',
  'docs/kubernetes/README.md',
  'docs/kubernetes/admission.md',
  'docs/kubernetes/whatif.md',
  'docs/kubernetes/reference.md',
  'deploy/kubernetes/README.md',
  'deploy/grafana/README.md',
]
const FOLDERS = 'protocol|controller|gpu-server|simulator|cli|test|deploy|docs|scenarios'

const VARIABLES = new Set<string>(Object.values(ENVIRONMENT).map(({ name }) => name))
let routes: readonly string[] = []

beforeAll(async () => {
  const { commands, views } = new FakeController()
  const app = createApi({ commands, views, version: '0.0.0', inVirtualTime: true })
  await app.ready()
  routes = Object.keys((app.swagger() as { readonly paths: object }).paths)
  await app.close()
})

describe.each(PAGES)('%s', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8')

  it('names existing files', () => {
    const named = [...text.matchAll(new RegExp(`\`((?:${FOLDERS})/[\\w./-]+)\``, 'g'))].map(
      (match) => match[1] as string,
    )
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it('links to existing pages', () => {
    const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map((match) =>
      join(ROOT, page, '..', match[1] as string),
    )
    expect(links.filter((path) => !existsSync(path))).toEqual([])
  })

  it('names variables that are read', () => {
    const named = [...text.matchAll(/\b(?:CONTROLLER|NODE)_[A-Z_]*[A-Z]\b/g)].map(([name]) => name)
    const isReason = (name: string) => (WAIT_REASONS as readonly string[]).includes(name)
    expect(named.filter((name) => !VARIABLES.has(name) && !isReason(name))).toEqual([])
  })

  it('names existing commands with existing options', () => {
    expect(whyNotUnderstoodIn(text)).toEqual([])
  })

  it('names existing routes', () => {
    const plain = text.replaceAll(/\{(?:node|task):[^}]*\}/g, '{id}')
    const named = [...plain.matchAll(/\/api\/v1\/[\w/{}$-]+|\/(?:livez|readyz)\b/g)].map(([path]) =>
      path.replaceAll(/\$\w+/g, '{id}'),
    )
    const known = new Set(routes.map((route) => route.replaceAll(/\{\w+\}/g, '{id}')))
    expect(named.filter((path) => !known.has(path))).toEqual([])
  })
})

it('Each entry of the changelog is one line of at most 120 characters', () => {
  const lines = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split('\n')
  const entries = lines.slice(lines.indexOf('### Added'))
  expect(
    entries.filter((line) => line.length > 120 || !/^(?:- .*|#+ .*|\*\*.*\*\*|Nothing\.|)$/.test(line)),
  ).toEqual([])
})

describe('docs/decisions', () => {
  const folder = join(ROOT, 'docs/decisions')
  const pages = readdirSync(folder).filter((name) => /^\d{4}-/.test(name))

  it('The index lists every decision with its title, status and date', () => {
    const index = readFileSync(join(folder, 'README.md'), 'utf8').split('\n')
    expect(pages.length).toBeGreaterThan(70)
    for (const name of pages) {
      const [, title, status, date] =
        new RegExp(
          /^# \d{4}: (.*)\n\nStatus: (accepted|superseded by \[\d{4}\]\(.*\))\. Date: /.source +
            /(\d{4}-\d\d-\d\d)\.$/.source,
          'm',
        ).exec(readFileSync(join(folder, name), 'utf8')) ?? []
      const rows = index.filter((line) => line.startsWith(`| [${name.slice(0, 4)}](${name}) ${title} |`))
      expect(rows, name).toHaveLength(1)
      const row = rows[0] as string
      expect(row).toContain(`${title} | ${status}`)
      expect(row.endsWith(` | ${date} |`), row).toBe(true)
    }
  })

  it.each(['README.md', ...pages])('%s links to pages that exist', (name) => {
    const links = [...readFileSync(join(folder, name), 'utf8').matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)]
    expect(links.filter(([, path]) => !existsSync(join(folder, path as string)))).toEqual([])
  })
})

describe('docs/protocol.md', () => {
  const rules = readFileSync(join(ROOT, 'docs/protocol.md'), 'utf8')
    .split(/^\*\*(?=R\d)/m)
    .slice(1)

  it('has the rules R1 to R12, each with its code and a test', () => {
    expect(rules.map((rule) => /^R\d+/.exec(rule)?.[0])).toEqual(
      Array.from({ length: 12 }, (_, i) => `R${i + 1}`),
    )
    for (const rule of rules) {
      expect(rule).toMatch(/\bImplemented in\s`/)
      expect(testsNamedIn(rule).length).toBeGreaterThan(0)
    }
  })

  it('names existing tests', () => {
    for (const { path, title } of rules.flatMap(testsNamedIn)) {
      expect(readFileSync(join(ROOT, path), 'utf8'), `${path}: ${title}`).toContain(title)
    }
  })
})

/** Lines of code blocks, which are complete commands, and text in backticks, which may be incomplete. */
function whyNotUnderstoodIn(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^ *```\w*\n([\s\S]*?)^ *```/gm)].flatMap(([, block]) =>
    (block as string).split('\n'),
  )
  const spans = [...text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '').matchAll(/`(headroom [^`]+)`/g)].map(
    (match) => match[1] as string,
  )
  const words = (line: string): readonly string[] =>
    line
      .trim()
      .replace(/\s+#.*$/, '')
      .split(' ')
      .filter((word, i, all) => !all.slice(0, i + 1).every((each) => /^[A-Z_]+=/.test(each)))
  return [
    ...blocks
      .map(words)
      .flatMap(([name, ...args]) => (name === 'headroom' ? (whyNotUnderstood(args) ?? []) : [])),
    ...spans.map(words).flatMap(
      ([, ...args]) =>
        whyNotUnderstood(
          args.filter((word) => word !== '…'),
          false,
        ) ?? [],
    ),
  ]
}

/** Lines like: - `test/unit/x.test.ts`: "a title", "another". */
function testsNamedIn(rule: string): readonly { readonly path: string; readonly title: string }[] {
  return [...rule.matchAll(/^- `(test\/[^`]+)`: ((?:.|\n(?! ?-|\n))*)/gm)].flatMap(([, path, titles]) =>
    [...(titles as string).matchAll(/"([^"]+)"/g)].map((match) => ({
      path: path as string,
      title: (match[1] as string).replaceAll(/\s+/g, ' '),
    })),
  )
}
