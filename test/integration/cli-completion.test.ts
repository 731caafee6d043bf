/** Completion, tested in the shells themselves; a shell that is not installed is skipped. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { completionScript, SHELLS, type Shell } from '../../cli/command/completion.ts'
import { programOf } from '../../cli/program.ts'
import { temporaryFolder, write } from '../support/headroom-command.ts'

const program = await programOf(() => {})
const folder = temporaryFolder()
const scripts = Object.fromEntries(
  SHELLS.map((shell) => [shell, write(folder, shell, completionScript(program, shell))]),
) as Record<Shell, string>

/** The arguments with which a shell requests candidates for the last word. */
const ASK: Record<Shell, (words: readonly string[]) => readonly string[]> = {
  bash: (words) => [
    '--norc',
    '-c',
    'source "$0"; COMP_WORDS=(headroom "$@"); COMP_CWORD=$#; _headroom; printf "%s\\n" "${COMPREPLY[@]}"',
    scripts.bash,
    ...words,
  ],
  // compadd works only while a line is edited, so its arguments are recorded instead.
  zsh: (words) => [
    '-f',
    '-c',
    'compdef() {}; compadd() { shift; print -l -- ${(M)@:#${words[CURRENT]}*} }; _files() {}; source ' +
      '"$0"; words=(headroom "$@"); CURRENT=$#words; _headroom',
    scripts.zsh,
    ...words,
  ],
  fish: (words) => [
    '--no-config',
    '-c',
    `source ${scripts.fish}; complete -C ${JSON.stringify(`headroom ${words.join(' ')}`)} | string ` +
      `replace -r '\\t.*' ''; true`,
  ],
}

function ask(shell: Shell, ...words: readonly string[]): readonly string[] {
  const out = execFileSync(shell, ASK[shell](words), {
    encoding: 'utf8',
    env: { ...process.env, HOME: folder },
  })
  return out.split('\n').filter((line) => line !== '')
}

function isInstalled(shell: Shell): boolean {
  try {
    execFileSync(shell, ['-c', 'true'], { env: { ...process.env, HOME: folder } })
    return true
  } catch {
    console.warn(`skipped: ${shell} is not installed`)
    return false
  }
}

const children = (command: Command): string[] => command.commands.map((child) => child.name())

it('Every command, option and choice is in every script', () => {
  const words = new Set<string>()
  const collect = (command: Command): void => {
    for (const { long, argChoices } of command.options)
      [long ?? '', ...(argChoices ?? [])].forEach((word) => words.add(word))
    for (const { argChoices } of command.registeredArguments) argChoices?.forEach((word) => words.add(word))
    command.commands.forEach((child) => {
      words.add(child.name())
      collect(child)
    })
  }
  collect(program)
  expect(words.size).toBeGreaterThan(80)
  for (const shell of SHELLS) {
    const script = completionScript(program, shell)
    for (const word of words) expect(script, `${shell}: ${word}`).toContain(word.replace(/^--/, ''))
  }
})

describe.each(SHELLS)('completion in %s', (shell) => {
  const here = it.skipIf(!isInstalled(shell))

  here('commands, after each other', () => {
    expect(ask(shell, '')).toEqual(expect.arrayContaining(children(program)))
    const node = program.commands.find((command) => command.name() === 'node')
    expect(ask(shell, 'node', '')).toEqual(
      expect.arrayContaining(node === undefined ? ['?'] : children(node)),
    )
    expect([...ask(shell, 'task', 'ca')]).toEqual(['cancel'])
    expect(ask(shell, 'completion', 'z')).toEqual(['zsh'])
  })

  here('options where they belong, and values where there is a choice', () => {
    expect(ask(shell, 'task', 'list', '--sta')).toEqual(['--state'])
    expect(ask(shell, 'task', 'show', '--sta')).toEqual([])
    expect(ask(shell, 'task', 'list', '--state', 'un')).toEqual(['unreachable'])
    expect(ask(shell, 'node', 'list', '-o', 'y')).toEqual(['yaml'])
    expect(ask(shell, 'node', 'list', '-o', 'wide', '--serv')).toEqual(['--server'])
  })

  here('nothing of ours after --', () => {
    expect(ask(shell, 'run', '--vram', '1Gi', '--', '--pri')).toEqual([])
  })
})

it.skipIf(!isInstalled('bash'))('is registered for headroom when it is sourced as the help says', () => {
  const out = execFileSync(
    'bash',
    ['--norc', '-c', `source <(cat "$0"); complete -p headroom`, scripts.bash],
    { encoding: 'utf8' },
  )
  expect(out).toContain('-F _headroom headroom')
})

describe.each(SHELLS)('names of the cluster in %s', (shell) => {
  const here = it.skipIf(!isInstalled(shell))
  // A program of this name answers as the controller would.
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'headroom'), '#!/bin/sh\n[ "$1" = names ] && printf "%s-1\\n%s-2\\n" "$2" "$2"\n', {
    mode: 0o755,
  })
  const asked = (...words: readonly string[]): readonly string[] => {
    const env = { ...process.env, HOME: folder, PATH: `${bin}:${process.env['PATH'] ?? ''}` }
    return execFileSync(shell, ASK[shell](words), { encoding: 'utf8', env }).split('\n')
  }

  here('are offered where a task, a node or a group is named, and nowhere else', () => {
    expect(asked('cancel', 'tasks')).toEqual(expect.arrayContaining(['tasks-1', 'tasks-2']))
    expect(asked('node', 'drain', 'nodes')).toEqual(expect.arrayContaining(['nodes-1', 'nodes-2']))
    expect(asked('run', '--group', 'groups')).toEqual(expect.arrayContaining(['groups-1', 'groups-2']))
    expect(asked('serve', 'tasks')).not.toContain('tasks-1')
  })
})
