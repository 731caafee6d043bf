/** `headroom token …` and `headroom audit`: their options. What they do is loaded when one is called. */
import { Option, type Command } from 'commander'
import { ROLES } from '../controller/domain/role.ts'
import { remote, withExamples, type SetExit } from './command-shape.ts'
import { folder, timeWithin, whole } from './option-values.ts'
import type { AuditOptions } from './operator/audit.ts'
import type { TokenCreateOptions, TokenOptions } from './operator/tokens.ts'

const MINUTE_MS = 60_000
const TEN_YEARS_MS = 315_360_000_000
const MAX_AUDIT_ROWS = 100_000
const DEFAULT_AUDIT_ROWS = 20

export function addTokenCommands(program: Command, setExit: SetExit): void {
  const token = program.command('token').description('who may use the REST interface (docs/security.md)')
  addCreate(token, setExit)
  withExamples(
    offline(remote(token.command('list').description('all tokens, without their secrets'))),
    'headroom token list',
  ).action(async (options: TokenOptions) => {
    const { tokenList } = await import('./operator/tokens.ts')
    setExit(await tokenList(options))
  })
  withExamples(
    offline(
      remote(
        token.command('revoke').description('tokens are of no use from now on').argument('<id...>', 'ids'),
      ),
    ).option('--force', 'also the last one of an admin'),
    'headroom token revoke k7v2m4x3q5zd',
  ).action(async (ids: string[], options: TokenOptions & { readonly force?: boolean }) => {
    const { tokenRevoke } = await import('./operator/tokens.ts')
    setExit(await tokenRevoke(ids, options))
  })
  withExamples(
    token
      .command('generate')
      .description('a secret for CONTROLLER_ADMIN_TOKEN_FILE; nothing is asked and nothing stored elsewhere')
      .option(
        '--out <file>',
        'written there, readable by you alone; one that is there stays; else on stdout',
      ),
    'headroom token generate --out admin.token',
  ).action(async (options: { readonly out?: string }) => {
    const { tokenGenerate } = await import('./operator/tokens.ts')
    setExit(tokenGenerate(options))
  })
}

function addCreate(token: Command, setExit: SetExit): void {
  withExamples(
    offline(
      remote(
        token
          .command('create')
          .description('make a token; its secret is printed this once')
          .argument('<name>', 'whose it is'),
      ),
    )
      .addOption(new Option('--role <role>', 'what it may do').choices(ROLES).makeOptionMandatory())
      .option('--expires <time>', 'it is of no use after so long', timeWithin(MINUTE_MS, TEN_YEARS_MS)),
    'headroom token create alice --role submitter --expires 90d',
    'headroom token create root --role admin --data-dir ./data  # the first one, before the controller runs',
  ).action(async (name: string, options: TokenCreateOptions) => {
    const { tokenCreate } = await import('./operator/tokens.ts')
    setExit(await tokenCreate(name, options))
  })
}

export function addAudit(program: Command, setExit: SetExit): void {
  withExamples(
    remote(program.command('audit').description('who asked for what, and who was kept out, newest first'))
      .option('--actor <name>', 'only of this name')
      .option('--action <operation>', 'only this operation (putConfig)')
      .option('--target <text>', 'part of method and path')
      .addOption(
        new Option('--outcome <outcome>', 'how it came out').choices(['accepted', 'refused', 'failed']),
      )
      .option('--last <n>', 'at most so many', whole(1, MAX_AUDIT_ROWS), DEFAULT_AUDIT_ROWS),
    'headroom audit --outcome refused',
    'headroom audit --actor alice --last 200 -o jsonl',
  ).action(async (options: AuditOptions) => {
    const { audit } = await import('./operator/audit.ts')
    setExit(await audit(options))
  })
}

function offline(command: Command): Command {
  return command.option(
    '--data-dir <dir>',
    'in the store there, of a controller that does not run; nobody is asked',
    folder,
  )
}
