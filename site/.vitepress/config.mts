// The pages of this repository as a site, with API references that lab/reference makes from the code:
// nothing is written for the site alone.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize, relative, resolve } from 'node:path'
import { defineConfig } from 'vitepress'

const root = resolve(import.meta.dirname, '../..')
const repository = 'https://github.com/pleach-go/pleach'

// slugify names headings as GitHub does, so that links work in both places.
const slugify = (heading: string) =>
  heading.replace(/<[^>]*>/g, '').replaceAll(' ', '-').replace(/[^\p{L}\p{N}\-_]/gu, '').toLowerCase()

// relink leads links to code, which is no part of the site, to the repository, and those to a
// README to the index that it is here.
function relink(md: any) {
  const standard = md.renderer.rules.link_open ?? ((t: any, i: number, o: any, _: any, self: any) => self.renderToken(t, i, o))
  md.renderer.rules.link_open = (tokens: any, i: number, options: any, env: any, self: any) => {
    const href: string = tokens[i].attrGet('href')
    if (href && !/^([a-z]+:|#)/.test(href)) {
      const file = normalize(join(dirname(relative(root, env.realPath ?? env.path)), href.split('#')[0]))
      if (existsSync(join(root, file)) && (!file.endsWith('.md') || file.startsWith('.github'))) {
        const kind = statSync(join(root, file)).isDirectory() ? 'tree' : 'blob'
        tokens[i].attrSet('href', `${repository}/${kind}/main/${file}`)
      } else {
        tokens[i].attrSet('href', href.replace(/README\.md(?=#|$)/, 'index.md'))
      }
    }
    return standard(tokens, i, options, env, self)
  }
}

// pages are those of a directory, by their titles. Those that are named come first.
function pages(folder: string, ...first: string[]) {
  const order = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length)
  return readdirSync(join(root, 'docs', folder))
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => file.slice(0, -'.md'.length))
    .sort((a, b) => order(a) - order(b) || a.localeCompare(b))
    .map((name) => ({
      text: title(join('docs', folder, name + '.md')),
      link: `/docs/${folder}/${name}`.replace('//', '/'),
    }))
}

const title = (file: string) => /^# (.*)/m.exec(readFileSync(join(root, file), 'utf8'))![1]

// references are the pages that `make site` writes before the site is built.
function references() {
  const dir = 'site/reference'
  if (!existsSync(join(root, dir))) return []
  const names = readdirSync(join(root, dir)).map((file) => file.slice(0, -'.md'.length)).sort()
  const item = (name: string) => ({ text: title(join(dir, name + '.md')), link: `/reference/${name}` })
  const packages = names.filter((name) => name.startsWith('go-')).map(item)
  return [{ ...item('go'), items: packages, collapsed: true }, item('python'), item('agent')]
}

export default defineConfig({
  title: 'Pleach',
  description: 'Broadcasts and collectives that finish even when machines die',
  srcDir: '..',
  srcExclude: ['**/testdata/**', '.github/**', 'site/node_modules/**', 'bin/**', 'dist/**'],
  rewrites: (path: string) => path.replace(/README\.md$/, 'index.md').replace(/^site\/reference\//, 'reference/'),
  cleanUrls: false,
  // Pages lie beside the packages of the site, not above them.
  vite: { resolve: { alias: { 'vue/server-renderer': join(root, 'site/node_modules/vue/server-renderer'), vue: join(root, 'site/node_modules/vue') } } },
  markdown: { anchor: { slugify }, config: relink },
  themeConfig: {
    // Records of decisions are for contributors, and would hide the pages for users.
    search: { provider: 'local', options: { _render: (src: string, env: any, md: any) => (/(^|\/)adr\//.test(env.relativePath) ? '' : md.render(src, env)) } },
    outline: 'deep',
    nav: [
      { text: 'Why', link: '/docs/why' },
      { text: 'Tutorial', link: '/docs/guide/tutorial' },
      { text: 'Guides', link: '/docs/guide/services' },
      { text: 'Operate', link: '/docs/operate/deploy' },
      { text: 'API', link: '/reference/go' },
      { text: 'Repository', link: repository },
    ],
    sidebar: [
      { text: 'Begin', items: [{ text: 'Pleach', link: '/' }, ...pages('', 'why', 'limitations', 'concepts', 'guarantees', 'questions'), { text: 'All pages', link: '/docs/' }] },
      { text: 'Guides', items: pages('guide', 'tutorial', 'services', 'adapters', 'testing', 'agents', 'jobs') },
      { text: 'API references', items: references() },
      { text: 'Migrate', items: pages('migrate') },
      { text: 'Operate', items: pages('operate', 'checklist', 'deploy', 'kubernetes', 'security', 'monitor', 'troubleshooting', 'versions', 'settings') },
      { text: 'Measure', items: pages('measure') },
      { text: 'Research', items: pages('research', 'see', 'reproduction') },
      { text: 'Develop', items: [...pages('develop'), { text: 'Decisions', link: '/docs/adr/' }, { text: 'Contributing', link: '/CONTRIBUTING' }, { text: 'Changes', link: '/CHANGELOG' }] },
    ],
  },
})
