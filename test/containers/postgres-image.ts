/**
 * The image `postgres:15-alpine` without a registry, from the programs of this host: user, folders and
 * variables are those that the shipped file relies on.
 */
import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, cpSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Engine } from './engine.ts'
import { baseRoot, copyProgram, imported } from './images.ts'

const TAG = 'postgres:15-alpine'
const USER = 70
const DATA = 'var/lib/postgresql/data'
const PROGRAMS = ['postgres', 'initdb', 'pg_isready']

/** What the shipped file expects of the image's entry point. */
const ENTRYPOINT = `#!/bin/sh
set -e
if ! [ -s /${DATA}/PG_VERSION ]; then
  umask 077
  echo "$POSTGRES_PASSWORD" > /tmp/password
  initdb -D /${DATA} -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 $POSTGRES_INITDB_ARGS
  echo 'host all all all scram-sha-256' >> /${DATA}/pg_hba.conf
  echo "create database $POSTGRES_DB" | postgres --single -D /${DATA} postgres
fi
exec postgres -D /${DATA} -c 'listen_addresses=*' -c unix_socket_directories=/var/run/postgresql
`

export function makePostgresImage(engine: Engine, folder: string): void {
  const programs = dirname(
    realpathSync(execFileSync('sh', ['-c', 'command -v initdb'], { encoding: 'utf8' }).trim()),
  )
  const version = basename(dirname(programs))
  const root = join(folder, 'postgres')
  baseRoot(root)
  appendFileSync(join(root, 'etc/passwd'), `postgres:x:${USER}:${USER}:postgres:/:/bin/sh\n`)
  // The programs find their files relative to this folder.
  for (const name of PROGRAMS) copyProgram(root, join(programs, name), join(programs, name))
  for (const part of [join(dirname(programs), 'lib'), `/usr/share/postgresql/${version}`])
    // Its compiler of queries needs LLVM, which is large; without this file it is off.
    cpSync(part, join(root, part), { recursive: true, filter: (path) => !/llvmjit|bitcode/.test(path) })
  mkdirSync(join(root, DATA), { recursive: true })
  chmodSync(join(root, DATA), 0o700)
  chownSync(join(root, DATA), USER, USER)
  writeFileSync(join(root, 'usr/local/bin/entry'), ENTRYPOINT, { mode: 0o755 })
  imported(
    engine,
    root,
    TAG,
    `ENV PATH=${programs}:/usr/local/bin:/usr/bin:/bin TZ=UTC`,
    'ENTRYPOINT ["entry"]',
  )
}
