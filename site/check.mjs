// check.mjs DIR: every link and picture of the built site leads to a file, and to an id where
// it names one. What is outside of the site is not looked at.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const dist = resolve(process.argv[2])
const pages = readdirSync(dist, { recursive: true }).filter((f) => f.endsWith('.html'))
const html = (file) => readFileSync(file, 'utf8')
const decode = (s) => decodeURIComponent(s.replaceAll('&amp;', '&'))
let links = 0
const dead = []
for (const page of pages) {
  const text = html(join(dist, page)).replace(/<script[\s\S]*?<\/script>/g, '')
  for (const [, link] of text.matchAll(/\s(?:href|src)="([^"]+)"/g)) {
    if (/^([a-z]+:|\/\/)/.test(link)) continue
    links++
    const [path, id] = decode(link).split('#')
    let file = path === '' ? join(dist, page) : path.startsWith('/') ? join(dist, path) : join(dist, dirname(page), path)
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, 'index.html')
    if (!existsSync(file) && existsSync(file + '.html')) file += '.html'
    if (!existsSync(file)) dead.push(`${page}: ${link}: no such file`)
    else if (id && file.endsWith('.html') && !html(file).includes(`id="${id}"`)) dead.push(`${page}: ${link}: no such heading`)
  }
}
console.log(`${pages.length} pages, ${links} links, ${dead.length} dead`)
dead.forEach((d) => console.log(d))
process.exit(pages.length > 30 && dead.length === 0 ? 0 : 1)
