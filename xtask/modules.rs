//! The modules of a crate, their definitions, and the resolution of paths.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context, Result};

use crate::words::{Token, tokens};

/// A module: a file, or a block `mod name { … }` in one.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: String,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    items: HashSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Paths of at least two words, outside imports.
    pub(crate) paths: Vec<Vec<String>>,
    /// All words, outside imports.
    pub(crate) words: HashSet<String>,
}

/// One name of a `use`.
#[derive(Clone)]
pub(crate) struct Import {
    /// Its local name; `*` for a glob import.
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
}

/// What a path resolves to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Module(usize),
    /// Something defined in this module.
    In(usize),
}

/// All modules of a crate; the first is its root.
pub(crate) struct Modules(pub(crate) Vec<Module>);

impl Modules {
    /// Reads the modules reachable from `root`, given all files by path.
    pub(crate) fn read(root: &str, files: &BTreeMap<String, String>) -> Result<Self> {
        let mut all = Modules(Vec::new());
        all.read_file(root, None, files)?;
        Ok(all)
    }

    fn read_file(&mut self, file: &str, parent: Option<usize>, files: &BTreeMap<String, String>) -> Result<usize> {
        let tokens = tokens(files.get(file).with_context(|| format!("cannot read {file}: there is no such file"))?);
        let at = self.add(file, parent);
        let declared = self.read_block(at, &tokens);
        for (of, name) in declared {
            let folder = self.folder(of);
            let places = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
            let place = places.iter().find(|place| files.contains_key(*place));
            let place =
                place.with_context(|| format!("{file} declares {name}, but there is no {}", places.join(" or ")))?;
            let child = self.read_file(place, Some(of), files)?;
            self.0[of].children.insert(name, child);
        }
        Ok(at)
    }

    fn add(&mut self, file: &str, parent: Option<usize>) -> usize {
        self.0.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.0.len() - 1
    }

    /// The folder with the files of a module's children.
    fn folder(&self, at: usize) -> String {
        let module = &self.0[at];
        let owner = module.parent.filter(|parent| self.0[*parent].file == module.file);
        if let Some(parent) = owner {
            let name = self.0[parent].children.iter().find(|(_, child)| **child == at).map_or("", |(name, _)| name);
            return format!("{}{name}/", self.folder(parent));
        }
        let (folder, name) = module.file.rsplit_once('/').map_or(("", &*module.file), |(folder, name)| (folder, name));
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder,
            _ => format!("{folder}{}/", name.trim_end_matches(".rs")),
        }
    }

    /// Reads a module's tokens. Returns the modules declared as separate files, each with the declaring module.
    fn read_block(&mut self, at: usize, tokens: &[Token]) -> Vec<(usize, String)> {
        let mut declared = Vec::new();
        let (mut here, mut depth) = (0, 0_usize);
        while let Some(token) = tokens.get(here) {
            let next = tokens.get(here + 1).and_then(Token::word);
            match (token, next) {
                (Token::Mark('{' | '(' | '['), _) => depth += 1,
                (Token::Mark('}' | ')' | ']'), _) => depth = depth.saturating_sub(1),
                (Token::Word(word), _) if word == "use" => {
                    let end = here + tokens[here..].iter().position(|t| t.is(';')).unwrap_or(tokens.len() - here);
                    read_use(&tokens[here + 1..end], &mut Vec::new(), &mut self.0[at].imports);
                    here = end;
                    continue;
                }
                (Token::Word(word), Some(name)) if word == "mod" && depth == 0 => {
                    if tokens.get(here + 2).is_some_and(|t| t.is('{')) {
                        let end = block_end(tokens, here + 2);
                        let file = self.0[at].file.clone();
                        let child = self.add(&file, Some(at));
                        self.0[at].children.insert(name.to_owned(), child);
                        declared.extend(self.read_block(child, &tokens[here + 3..end]));
                        here = end + 1;
                    } else {
                        declared.push((at, name.to_owned()));
                        here += 2;
                    }
                    continue;
                }
                (Token::Word(word), Some(name)) if depth == 0 && defines(word) => {
                    self.0[at].items.insert(name.to_owned());
                }
                (Token::Word(word), _) if depth == 0 && word == "macro_rules" => {
                    self.0[at].items.extend(tokens.get(here + 2).and_then(Token::word).map(str::to_owned));
                }
                _ => {}
            }
            here += self.0[at].read_path(tokens, here).max(1);
        }
        declared
    }

    /// What `path` resolves to from module `from`; nothing if outside the crate.
    pub(crate) fn resolve(&self, from: usize, path: &[String]) -> Option<Place> {
        self.follow(from, path, 0)
    }

    /// Whether a module defines or imports `name` by name.
    pub(crate) fn defines(&self, module: usize, name: &str) -> bool {
        let module = &self.0[module];
        module.items.contains(name) || module.imports.iter().any(|import| import.name == name)
    }

    /// Whether `path`, a module and a name, resolves to something known by that name.
    pub(crate) fn knows(&self, from: usize, path: &[String]) -> bool {
        let Some((name, module)) = path.split_last() else { return false };
        match self.resolve(from, module) {
            Some(Place::Module(module)) => self.find(module, name, true, 0).is_some(),
            _ => false,
        }
    }

    fn follow(&self, from: usize, path: &[String], depth: usize) -> Option<Place> {
        // re-exports in a cycle
        if depth > 20 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let mut place = match &**first {
            "crate" => Place::Module(0),
            "self" => Place::Module(from),
            "super" => Place::Module(self.0[from].parent?),
            name => self.find(from, name, rest.is_empty(), depth)?,
        };
        for (at, name) in rest.iter().enumerate() {
            let Place::Module(module) = place else { break };
            place = match &**name {
                "super" => Place::Module(self.0[module].parent?),
                name => match self.find(module, name, at + 1 == rest.len(), depth) {
                    Some(place) => place,
                    // of another crate, and re-exported here
                    None if self.defines(module, name) => return None,
                    // items that a macro generates are in no list
                    None => Place::In(module),
                },
            };
        }
        Some(place)
    }

    /// What `name` is in a module. At the end of a path an item wins over a module, before the end a module over an item.
    fn find(&self, module: usize, name: &str, is_end: bool, depth: usize) -> Option<Place> {
        let found = &self.0[module];
        let child = found.children.get(name).map(|child| Place::Module(*child));
        if child.is_some() && !is_end {
            return child;
        }
        if found.items.contains(name) {
            return Some(Place::In(module));
        }
        let import = found.imports.iter().find(|import| import.name == name && import.path != [name]);
        let import = import.and_then(|import| self.follow(module, &import.path, depth + 1));
        let from_all =
            || found.imports.iter().filter(|i| i.name == "*").find_map(|i| self.in_all(module, i, name, depth));
        import.or(child).or_else(from_all)
    }

    /// What `name` is through a glob import.
    fn in_all(&self, from: usize, import: &Import, name: &str, depth: usize) -> Option<Place> {
        match self.follow(from, &import.path, depth + 1)? {
            Place::Module(module) if module != from => self.find(module, name, true, depth + 1),
            _ => None,
        }
    }
}

impl Module {
    /// Reads the word or path that begins at `at` and returns its number of tokens.
    fn read_path(&mut self, tokens: &[Token], at: usize) -> usize {
        let mut path: Vec<String> = Vec::new();
        let mut here = at;
        while let Some(Token::Word(word)) = tokens.get(here) {
            path.push(word.clone());
            here += 1;
            match (tokens.get(here), tokens.get(here + 1)) {
                (Some(Token::Path), Some(Token::Word(_))) => here += 1,
                _ => break,
            }
        }
        // fields and methods are not looked up in the module
        if !(at > 0 && tokens[at - 1].is('.')) {
            self.words.extend(path.first().cloned());
        }
        if path.len() > 1 {
            self.paths.push(path);
        }
        here - at
    }
}

fn defines(word: &str) -> bool {
    matches!(word, "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static")
}

/// The end of the block that opens at `at`.
fn block_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (here, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') if depth == 1 => return here,
            Token::Mark('}') => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Reads `a::{b as c, d::*, self}` below `before`.
fn read_use(tokens: &[Token], before: &mut Vec<String>, into: &mut Vec<Import>) {
    let depth = before.len();
    let mut here = 0;
    let mut name = None;
    while let Some(token) = tokens.get(here) {
        match token {
            Token::Word(word) if word == "as" => {
                name = tokens.get(here + 1).and_then(Token::word).map(str::to_owned);
                here += 1;
            }
            // in braces: the module itself
            Token::Word(word) if word == "self" && depth > 0 && before.len() == depth => name = before.last().cloned(),
            Token::Word(word) => before.push(word.clone()),
            Token::Mark('*') => name = Some("*".to_owned()),
            Token::Mark('{') => {
                let end = block_end(tokens, here);
                for part in parts(&tokens[here + 1..end]) {
                    read_use(part, before, into);
                }
                before.truncate(depth);
                return;
            }
            _ => {}
        }
        here += 1;
    }
    if let Some(name) = name.or_else(|| before.last().cloned()) {
        into.push(Import { name, path: before.clone() });
    }
    before.truncate(depth);
}

/// Splits at commas, outside braces.
fn parts(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0_usize;
    let is_end = |token: &Token| {
        match token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => depth -= 1,
            _ => {}
        }
        depth == 0 && token.is(',')
    };
    tokens.split(is_end).filter(|part| !part.is_empty()).collect()
}
