/**
 * The `protocol` commands: what stands on the wire, for those who write a server or a client of their own.
 */
import type { Command } from 'commander'

const LINE_WIDTH = 150

export function addProtocolCommands(program: Command): void {
  const protocol = program
    .command('protocol')
    .description('what controller and GPU servers say to each other')
  protocol
    .command('asyncapi')
    .description('the AsyncAPI 3 document of the wire: subjects, operations, messages, their schemas')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { readonly json?: boolean }) => {
      const { asyncApiDocument } = await import('../protocol/asyncapi.ts')
      const document = asyncApiDocument()
      if (json) {
        process.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
        return
      }
      const { stringify } = await import('yaml')
      process.stdout.write(`${MADE_BY}${stringify(document, { lineWidth: LINE_WIDTH })}`)
    })
}

const MADE_BY =
  '# Made by `headroom protocol asyncapi` from protocol/schema.ts and protocol/conversations.ts.\n'
